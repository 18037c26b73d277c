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

// A stream is n bytes that anybody can make again: a block of random bytes,
// repeated. The block's length divides no power of two and no segment, so bytes
// that come at a wrong place change the hash.

var block = func() []byte {
	b := make([]byte, 1_000_003)
	r := rand.NewChaCha8([32]byte{7, 77})
	r.Read(b)
	return b
}()

// piece is how much is written and read at once.
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

// receiveStream reads to the end and checks that it was a stream of n bytes.
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

// readerOnly and writerOnly hide everything else that their value can do, so that
// bytes go through our buffer, and so through Read and Write.
type (
	readerOnly struct{ io.Reader }
	writerOnly struct{ io.Writer }
)

var hashes sync.Map // of streams, by length

// streamHash is the hash of a stream of n bytes.
func streamHash(n int) [sha256.Size]byte {
	if sum, ok := hashes.Load(n); ok {
		return sum.([sha256.Size]byte)
	}
	h := sha256.New()
	sendStream(h, n) // a hash takes everything
	sum := [sha256.Size]byte(h.Sum(nil))
	hashes.Store(n, sum)
	return sum
}

// transfer sends a stream through a connection, ends it, and checks what comes
// out at the other end.
func transfer(from, to conn, n int) error {
	sent := make(chan error, 1) // from the goroutine, once
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

// rate tells how fast n bytes went since began.
func rate(n int, began time.Time) string {
	d := time.Since(began)
	return fmt.Sprintf("%d MiB in %v: %.2f Gb/s", n>>20, d.Round(time.Millisecond), float64(n)*8/d.Seconds()/1e9)
}

// echo gives back everything that comes on the connections to a listener, and
// ends each when its peer does. It ends when the listener is closed.
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
