package load

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"loam/test/bench/subject"
)

// bulk moves bytes one way over one connection, as fast as they go. What counts
// is what the receiving program has read.
//
// Samples: "Gb/s"; and of the client's process, which on a pipe has both ends in
// it, "allocs/MB", objects allocated for each 10^6 bytes, and "CPU s/GB", time on
// CPUs for each 10^9.
type bulk struct{ send bool }

// Directions, the first byte that a client sends.
const (
	toServer = 'u'
	toClient = 'd'
)

const chunk = 64 << 10

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

// sink reads everything and answers with the number of bytes.
func sink(c net.Conn) {
	buf := make([]byte, chunk)
	var total uint64
	for {
		n, err := c.Read(buf)
		total += uint64(n)
		if err != nil {
			break
		}
	}
	c.Write(binary.BigEndian.AppendUint64(nil, total))
}

// source writes until the client goes away.
func source(c net.Conn) {
	buf := make([]byte, chunk)
	for {
		if _, err := c.Write(buf); err != nil {
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

// send writes for span, ends the stream, and asks the server how much came.
func send(c net.Conn, span time.Duration) (total uint64, took time.Duration, err error) {
	if _, err := c.Write([]byte{toServer}); err != nil {
		return 0, 0, err
	}
	buf := make([]byte, chunk)
	start := time.Now()
	for time.Since(start) < span {
		if _, err := c.Write(buf); err != nil {
			return 0, 0, err
		}
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return 0, 0, err
	}
	var count [8]byte
	if _, err := io.ReadFull(c, count[:]); err != nil {
		return 0, 0, err
	}
	return binary.BigEndian.Uint64(count[:]), time.Since(start), nil
}

// receive reads for span.
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
		total += uint64(n)
		took = time.Since(start)
	}
	return total, took, nil
}
