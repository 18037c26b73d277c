package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"loam/test/bench/subject"
)

// bulk transfers bytes in one direction over one connection, as fast as possible. The result counts the
// bytes that the receiving program has read. The receiver checks the contents of the first megabyte. If
// the stack under test sends, the load also checks that all bytes arrived.
//
// Samples: "Gb/s"; and for the client's process, which on a pipe contains both ends: "allocs/MB",
// objects allocated per 10^6 bytes, and "CPU s/GB", CPU seconds per 10^9 bytes.
type bulk struct{ send bool }

// First byte that a client sends: the direction in which data will flow.
const (
	toServer = 'u'
	toClient = 'd'
)

// Sizes in bytes: of a chunk, which is one write or read, and of the beginning of the stream that is checked.
const (
	chunk   = 64 << 10
	checked = 1 << 20
)

// pattern is two chunks of the stream. Any chunk of the stream, wherever it begins, is a part of it.
var pattern = func() []byte {
	b := make([]byte, 2*chunk)
	for i := range b {
		at := i % chunk
		b[i] = byte(at ^ at>>8)
	}
	return b
}()

var errDamaged = errors.New("the bytes that arrived are not those that were sent")

// check compares b with the bytes of the stream that begin at the offset at. Beyond the
// checked beginning it does nothing.
func check(b []byte, at uint64) error {
	from := int(at % chunk)
	if at < checked && !bytes.Equal(b, pattern[from:from+len(b)]) {
		return errDamaged
	}
	return nil
}

func (b bulk) Serve(h subject.Host) error {
	return serve(h, func(c net.Conn) {
		defer c.Close()
		var direction [1]byte
		if _, err := io.ReadFull(c, direction[:]); err != nil {
			return
		}
		if direction[0] == toServer {
			sink(c)
		} else {
			source(c)
		}
	})
}

// sink reads the whole stream and replies with the number of bytes. If the bytes are damaged, it closes
// the connection without a reply.
func sink(c net.Conn) {
	buf := make([]byte, chunk)
	var total uint64
	for {
		n, err := c.Read(buf)
		if check(buf[:n], total) != nil {
			return
		}
		total += uint64(n)
		if err != nil {
			break
		}
	}
	c.Write(binary.BigEndian.AppendUint64(nil, total))
}

// source writes until the client closes the connection.
func source(c net.Conn) {
	for {
		if _, err := c.Write(pattern[:chunk]); err != nil {
			return
		}
	}
}

func (b bulk) Run(h subject.Host, peer netip.Addr, span time.Duration) (Samples, error) {
	c, err := dial(h, peer)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	before := use()
	var total uint64
	var took time.Duration
	if b.send {
		total, took, err = send(c, span)
	} else {
		total, took, err = receive(c, span)
	}
	after := use()
	if err != nil {
		return nil, err
	}
	if total == 0 {
		return nil, fmt.Errorf("no bytes arrived in %v", took)
	}
	return Samples{
		"Gb/s":      float64(total) * 8 / float64(took.Nanoseconds()),
		"allocs/MB": float64(after.objects-before.objects) / (float64(total) / 1e6),
		"CPU s/GB":  (after.cpu - before.cpu).Seconds() / (float64(total) / 1e9),
	}, nil
}

// send writes for the duration span, ends the stream, and reads the number of bytes that
// the server received.
func send(c net.Conn, span time.Duration) (total uint64, took time.Duration, err error) {
	if _, err := c.Write([]byte{toServer}); err != nil {
		return 0, 0, err
	}
	var written uint64
	start := time.Now()
	for time.Since(start) < span {
		n, err := c.Write(pattern[:chunk])
		if err != nil {
			return 0, 0, err
		}
		written += uint64(n)
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return 0, 0, err
	}
	var count [8]byte
	if _, err := io.ReadFull(c, count[:]); err != nil {
		return 0, 0, fmt.Errorf("the server's count of bytes: %w", err)
	}
	total = binary.BigEndian.Uint64(count[:])
	if total != written {
		return 0, 0, fmt.Errorf("%d bytes were sent and %d arrived", written, total)
	}
	return total, time.Since(start), nil
}

// receive reads for the duration span.
func receive(c net.Conn, span time.Duration) (total uint64, took time.Duration, err error) {
	start := time.Now()
	if _, err := c.Write([]byte{toClient}); err != nil {
		return 0, 0, err
	}
	buf := make([]byte, chunk)
	for took < span {
		n, err := c.Read(buf)
		if err != nil {
			return 0, 0, err
		}
		if err := check(buf[:n], total); err != nil {
			return 0, 0, err
		}
		total += uint64(n)
		took = time.Since(start)
	}
	return total, took, nil
}
