//go:build linux

package interop

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// iperf3 on Linux against a server on Loam. iperf3 has no specification; its iperf_api.h defines the
// protocol. Over a control connection, the server leads the client through states, one byte each.
// Parameters and results are JSON, preceded by their length. Each stream is a connection of its own,
// which begins with the cookie of the test.

// States of iperf3's protocol, as numbered in iperf_api.h.
const (
	iperfStart   = 1
	iperfRunning = 2
	iperfEnd     = 4
	iperfParams  = 9
	iperfStreams = 10
	iperfResults = 13
	iperfShow    = 14
	iperfDone    = 16
)

const (
	iperfPort    = 5201
	iperfCookie  = 37       // length in bytes
	iperfLongest = 64 << 10 // maximum length of a JSON message, in bytes
)

// iperfTest is the part of the client's parameters that matters here.
type iperfTest struct {
	Parallel int  `json:"parallel"`
	Reverse  bool `json:"reverse"` // the server sends
}

// iperfMoved is the part of the reports about a stream that both ends send after the test.
type iperfMoved struct {
	ID    int   `json:"id"`
	Bytes int64 `json:"bytes"`
}

// iperfStream is the server's report about a stream.
type iperfStream struct {
	iperfMoved
	Retransmits int     `json:"retransmits"`
	Jitter      float64 `json:"jitter"`
	Errors      int     `json:"errors"`
	Packets     int     `json:"packets"`
}

type iperfResult struct {
	CPUTotal    float64       `json:"cpu_util_total"`
	CPUUser     float64       `json:"cpu_util_user"`
	CPUSystem   float64       `json:"cpu_util_system"`
	Retransmits int           `json:"sender_has_retransmits"`
	Streams     []iperfStream `json:"streams"`
}

// TestIperf checks that iperf3 sends to Loam and receives from it, with one stream and with four, the
// requested number of bytes, and that both ends count the same.
func TestIperf(t *testing.T) {
	size := int64(scale(256, 8)) << 20
	for _, c := range []struct {
		streams int
		reverse bool
	}{{1, false}, {1, true}, {4, false}, {4, true}} {
		t.Run(fmt.Sprintf("%d streams reverse %v", c.streams, c.reverse), func(t *testing.T) {
			l := newLab(t, setup{})
			l.need("iperf3")
			ln, err := l.loam.listen("tcp", l.loam.at(iperfPort))
			l.must(err)
			defer ln.Close()
			defer context.AfterFunc(l.ctx, func() { ln.Close() })()
			type served struct {
				moved int64
				err   error
			}
			done := make(chan served, 1) // the server sends once
			go func() {
				n, err := serveIperf(ln, l.until())
				done <- served{n, err}
			}()
			args := []string{"--json", "-c", l.loam.addr.String(), "-P", fmt.Sprint(c.streams), "-n", fmt.Sprint(size)}
			if c.reverse {
				args = append(args, "-R")
			}
			var report struct {
				End struct {
					Sent     struct{ Bytes int64 } `json:"sum_sent"`
					Received struct{ Bytes int64 } `json:"sum_received"`
				}
			}
			out := l.run("iperf3", args...)
			l.must(json.Unmarshal([]byte(out), &report))
			server := <-done
			l.must(server.err)
			sent, received := report.End.Sent.Bytes, report.End.Received.Bytes
			expected := received // number of bytes that Loam received
			if c.reverse {
				expected = sent
			}
			if server.moved != expected || received < size || received > sent || !c.reverse && received != sent {
				t.Errorf("asked for %d bytes: %d were sent, %d received, of which Loam moved %d", size, sent, received, server.moved)
			}
			if strings.Contains(out, `"error"`) {
				t.Errorf("iperf3 complains:\n%s", out)
			}
		})
	}
}

// serveIperf serves one test and returns the number of bytes moved by all streams.
func serveIperf(ln net.Listener, until time.Time) (moved int64, err error) {
	control, err := acceptIperf(ln, until)
	if err != nil {
		return 0, err
	}
	defer control.Close()
	var asked iperfTest
	if err := errors.Join(say(control, iperfParams), receiveJSON(control, &asked), say(control, iperfStreams)); err != nil {
		return 0, err
	}
	streams := make([]net.Conn, max(asked.Parallel, 1))
	for i := range streams {
		if streams[i], err = acceptIperf(ln, until); err != nil {
			return 0, err
		}
		defer streams[i].Close()
	}
	if err := say(control, iperfStart, iperfRunning); err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	ours := iperfResult{Retransmits: -1, Streams: make([]iperfStream, len(streams))} // -1: not counted
	var theirs struct{ Streams []iperfMoved }
	for i, c := range streams {
		s := &ours.Streams[i]
		s.ID = iperfID(i)
		wg.Go(func() { s.Bytes = move(c, asked.Reverse) })
	}
	err = errors.Join(expect(control, iperfEnd), say(control, iperfResults), receiveJSON(control, &theirs))
	for _, c := range streams {
		c.SetDeadline(time.Unix(1, 0)) // makes every read and write return
	}
	wg.Wait()
	for i, c := range streams {
		s := &ours.Streams[i]
		if !asked.Reverse && err == nil {
			c.SetDeadline(until)
			err = s.rest(c, theirs.Streams)
		}
		moved += s.Bytes
	}
	return moved, errors.Join(err, sendJSON(control, &ours), say(control, iperfShow), expect(control, iperfDone))
}

// iperfID returns the number by which both ends identify a stream: 1, 3, 4, 5 and so on.
func iperfID(i int) int {
	if i == 0 {
		return 1
	}
	return i + 2
}

// rest receives the bytes that the other end has sent and this end has not yet received.
func (s *iperfStream) rest(c net.Conn, theirs []iperfMoved) error {
	i := slices.IndexFunc(theirs, func(t iperfMoved) bool { return t.ID == s.ID })
	if i < 0 {
		return fmt.Errorf("no result for stream %d in %v", s.ID, theirs)
	}
	n, err := io.CopyN(io.Discard, c, theirs[i].Bytes-s.Bytes)
	s.Bytes += n
	return err
}

// acceptIperf accepts a connection of the test and reads its cookie.
func acceptIperf(ln net.Listener, until time.Time) (net.Conn, error) {
	c, err := ln.Accept()
	if err != nil {
		return nil, err
	}
	c.SetDeadline(until)
	if _, err := io.ReadFull(c, make([]byte, iperfCookie)); err != nil {
		c.Close()
		return nil, fmt.Errorf("the cookie: %w", err)
	}
	return c, nil
}

// move sends or receives until the stream's deadline, and returns the number of bytes.
func move(c net.Conn, send bool) (n int64) {
	b := make([]byte, 128<<10)
	for {
		var m int
		var err error
		if send {
			m, err = c.Write(b)
		} else {
			m, err = c.Read(b)
		}
		n += int64(m)
		if err != nil {
			return n
		}
	}
}

// say sends states.
func say(control net.Conn, states ...byte) error {
	_, err := control.Write(states)
	return err
}

// expect waits for a state.
func expect(control net.Conn, want byte) error {
	var got [1]byte
	if _, err := io.ReadFull(control, got[:]); err != nil {
		return fmt.Errorf("waiting for state %d: %w", want, err)
	}
	if got[0] != want {
		return fmt.Errorf("state %d, want %d", got[0], want)
	}
	return nil
}

// receiveJSON reads JSON preceded by its length.
func receiveJSON(control net.Conn, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(control, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > iperfLongest {
		return syscall.EMSGSIZE
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(control, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// sendJSON sends JSON preceded by its length.
func sendJSON(control net.Conn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = control.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}
