//go:build linux

package interop

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A stream is n bytes that can be generated again: a block of random bytes, repeated. The length of the
// block does not divide any power of two or any segment size, so bytes at a wrong place change the
// hash.

var block = func() []byte {
	b := make([]byte, 1_000_003)
	r := rand.NewChaCha8([32]byte{7, 77})
	r.Read(b)
	return b
}()

// piece is the number of bytes per read and write.
const piece = 256 << 10

// sendStream writes a stream of n bytes.
func sendStream(w io.Writer, n int) error {
	for at := 0; at < n; {
		b := block[at%len(block):]
		b = b[:min(len(b), piece, n-at)]
		m, err := w.Write(b)
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", at+m, n, err)
		}
		at += m
	}
	return nil
}

// receiveStream reads to the end and checks that the data is a stream of n bytes.
func receiveStream(r io.Reader, n int) error {
	h := sha256.New()
	got, err := io.CopyBuffer(writerOnly{h}, readerOnly{r}, make([]byte, piece))
	switch {
	case err != nil:
		return fmt.Errorf("after %d of %d bytes: %w", got, n, err)
	case got != int64(n):
		return fmt.Errorf("got %d bytes, want %d", got, n)
	case [sha256.Size]byte(h.Sum(nil)) != streamHash(n):
		return fmt.Errorf("%d bytes with another hash", n)
	}
	return nil
}

// readerOnly and writerOnly hide all other methods of their value, so that io.CopyBuffer uses our
// buffer, Read and Write.
type (
	readerOnly struct{ io.Reader }
	writerOnly struct{ io.Writer }
)

var hashes sync.Map // hashes of streams by length

// streamHash returns the hash of a stream of n bytes.
func streamHash(n int) [sha256.Size]byte {
	if sum, ok := hashes.Load(n); ok {
		return sum.([sha256.Size]byte)
	}
	h := sha256.New()
	sendStream(h, n) // writing to a hash never fails
	sum := [sha256.Size]byte(h.Sum(nil))
	hashes.Store(n, sum)
	return sum
}

// transfer sends a stream over a connection, ends it, and checks what the other end receives.
func transfer(from, to conn, n int) error {
	sent := make(chan error, 1) // the goroutine sends once
	go func() {
		err := sendStream(from, n)
		if err == nil {
			err = from.CloseWrite()
		}
		sent <- err
	}()
	received := receiveStream(to, n)
	if received != nil {
		to.Close()
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("sender: %w (receiver: %v)", err, received)
	}
	if received != nil {
		return fmt.Errorf("receiver: %w", received)
	}
	return nil
}

// rate formats the rate of n bytes since the time began.
func rate(n int, began time.Time) string {
	d := time.Since(began)
	return fmt.Sprintf("%d MiB in %v: %.2f Gb/s", n>>20, d.Round(time.Millisecond), float64(n)*8/d.Seconds()/1e9)
}

// echo sends everything back that arrives on connections to a listener, and closes each when its peer
// does. It returns when the listener is closed.
func echo(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			io.CopyBuffer(writerOnly{c}, readerOnly{c}, make([]byte, 32<<10))
		}()
	}
}
