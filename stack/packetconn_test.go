package stack_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
)

// A conformance suite for net.PacketConn, like nettest.TestConn for net.Conn. It runs in
// fake time.

// testPacketConn runs the suite on two sockets, each of which reaches the other.
func testPacketConn(t *testing.T, open func(t *testing.T) (a, b net.PacketConn)) {
	for name, test := range map[string]func(*testing.T, net.PacketConn, net.PacketConn){
		"Boundaries":      packetBoundaries,
		"PingPong":        packetPingPong,
		"ReadDeadline":    packetReadDeadline,
		"MovedDeadline":   packetMovedDeadline,
		"PastDeadline":    packetPastDeadline,
		"Close":           packetClose,
		"CloseTwice":      packetCloseTwice,
		"ManyReaders":     packetManyReaders,
		"RacyDeadlines":   packetRacyDeadlines,
		"ConcurrentCalls": packetConcurrentCalls,
		"Errors":          packetErrors,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := open(t)
				defer a.Close()
				defer b.Close()
				test(t, a, b)
			})
		})
	}
}

func TestPacketConn(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprintf("pipe,shards=%d", shards), func(t *testing.T) {
			testPacketConn(t, func(t *testing.T) (a, b net.PacketConn) {
				p := newPair(t, stack.Config{Shards: shards}, pipe.Config{})
				return mustListenPacket(t, p.a, "10.0.0.1:0"), mustListenPacket(t, p.b, "10.0.0.2:0")
			})
		})
		t.Run(fmt.Sprintf("loopback,shards=%d", shards), func(t *testing.T) {
			testPacketConn(t, func(t *testing.T) (a, b net.PacketConn) {
				p := newPair(t, stack.Config{Shards: shards}, pipe.Config{})
				return mustListenPacket(t, p.a, "127.0.0.1:0"), mustListenPacket(t, p.a, "127.0.0.1:0")
			})
		})
	}
}

func mustSend(t *testing.T, c net.PacketConn, data string, to net.Addr) {
	t.Helper()
	if n, err := c.WriteTo([]byte(data), to); n != len(data) || err != nil {
		t.Errorf("WriteTo(%q): %d, %v", data, n, err)
	}
}

func mustReceive(t *testing.T, c net.PacketConn, want string, from net.Addr) {
	t.Helper()
	b := make([]byte, 2000)
	n, addr, err := c.ReadFrom(b)
	if err != nil || string(b[:n]) != want || addr.String() != from.String() {
		t.Errorf("ReadFrom: %q from %v, %v; want %q from %v", b[:n], addr, err, want, from)
	}
}

// wantTimeout checks that err is the error of package net after a deadline.
func wantTimeout(t *testing.T, err error) {
	t.Helper()
	var e net.Error
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &e) || !e.Timeout() {
		t.Errorf("got %v, want os.ErrDeadlineExceeded as a net.Error", err)
	}
}

func packetBoundaries(t *testing.T, a, b net.PacketConn) {
	for _, data := range []string{"one", "", "three", string(make([]byte, 1400))} {
		mustSend(t, a, data, b.LocalAddr())
	}
	for _, data := range []string{"one", "", "three", string(make([]byte, 1400))} {
		mustReceive(t, b, data, a.LocalAddr())
	}
	mustSend(t, a, "too long", b.LocalAddr())
	mustSend(t, a, "next", b.LocalAddr())
	short := make([]byte, 3)
	if n, _, err := b.ReadFrom(short); string(short[:n]) != "too" || err != nil {
		t.Errorf("into a short buffer: %q, %v", short[:n], err)
	}
	mustReceive(t, b, "next", a.LocalAddr())
}

func packetPingPong(t *testing.T, a, b net.PacketConn) {
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		for i := range 100 {
			mustReceive(t, b, fmt.Sprint("ping", i), a.LocalAddr())
			mustSend(t, b, fmt.Sprint("pong", i), a.LocalAddr())
		}
	})
	for i := range 100 {
		mustSend(t, a, fmt.Sprint("ping", i), b.LocalAddr())
		mustReceive(t, a, fmt.Sprint("pong", i), b.LocalAddr())
	}
}

func packetReadDeadline(t *testing.T, a, b net.PacketConn) {
	began := time.Now()
	a.SetReadDeadline(began.Add(time.Minute))
	_, _, err := a.ReadFrom(make([]byte, 10))
	wantTimeout(t, err)
	if d := time.Since(began); d != time.Minute {
		t.Errorf("the deadline came after %v", d)
	}
	mustSend(t, a, "writing goes on", b.LocalAddr())
	mustReceive(t, b, "writing goes on", a.LocalAddr())
	mustSend(t, b, "waiting", a.LocalAddr())
	synctest.Wait()
	_, _, err = a.ReadFrom(make([]byte, 10))
	wantTimeout(t, err) // as in package net, a datagram that is available is not returned after the deadline
	a.SetDeadline(time.Time{})
	mustReceive(t, a, "waiting", b.LocalAddr())
}

// A deadline that is set during a wait applies to that wait.
func packetMovedDeadline(t *testing.T, a, b net.PacketConn) {
	began := time.Now()
	a.SetReadDeadline(began.Add(time.Hour))
	done := blocked(func() error { _, _, err := a.ReadFrom(make([]byte, 10)); return err })
	a.SetReadDeadline(began.Add(time.Minute))
	wantTimeout(t, <-done)
	if d := time.Since(began); d != time.Minute {
		t.Errorf("an earlier deadline came after %v", d)
	}
	a.SetReadDeadline(time.Now().Add(time.Minute))
	done = blocked(func() error { _, _, err := a.ReadFrom(make([]byte, 10)); return err })
	a.SetReadDeadline(time.Now().Add(time.Hour))
	wantTimeout(t, <-done)
	if d := time.Since(began); d != time.Minute+time.Hour {
		t.Errorf("a later deadline came after %v", d-time.Minute)
	}
}

func packetPastDeadline(t *testing.T, a, b net.PacketConn) {
	past := time.Unix(1, 0)
	done := blocked(func() error { _, _, err := a.ReadFrom(make([]byte, 10)); return err })
	a.SetDeadline(past)
	wantTimeout(t, <-done)
	for range 3 {
		_, _, err := a.ReadFrom(make([]byte, 10))
		wantTimeout(t, err)
		_, err = a.WriteTo([]byte("x"), b.LocalAddr())
		wantTimeout(t, err)
	}
}

func packetClose(t *testing.T, a, b net.PacketConn) {
	read := blocked(func() error { _, _, err := a.ReadFrom(make([]byte, 10)); return err })
	if err := a.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-read; !isClosed(err) {
		t.Errorf("ReadFrom ends with %v, want net.ErrClosed", err)
	}
	if _, _, err := a.ReadFrom(make([]byte, 10)); !isClosed(err) {
		t.Errorf("ReadFrom afterwards: %v, want net.ErrClosed", err)
	}
	if _, err := a.WriteTo([]byte("x"), b.LocalAddr()); !isClosed(err) {
		t.Errorf("WriteTo afterwards: %v, want net.ErrClosed", err)
	}
	for name, set := range map[string]func(time.Time) error{
		"SetDeadline": a.SetDeadline, "SetReadDeadline": a.SetReadDeadline, "SetWriteDeadline": a.SetWriteDeadline,
	} {
		if err := set(time.Now().Add(time.Hour)); !isClosed(err) {
			t.Errorf("%s afterwards: %v, want net.ErrClosed", name, err)
		}
	}
	mustSend(t, b, "for nobody", a.LocalAddr())
}

func packetCloseTwice(t *testing.T, a, b net.PacketConn) {
	a.Close()
	err := a.Close()
	var op *net.OpError
	if !isClosed(err) || !errors.As(err, &op) || op.Op != "close" {
		t.Errorf("Close again: %v, want net.ErrClosed in an OpError", err)
	}
}

// Each datagram goes to one reader, and no reader misses its wakeup.
func packetManyReaders(t *testing.T, a, b net.PacketConn) {
	mustSend(t, a, "the way is known", b.LocalAddr()) // resolve the neighbour before many datagrams are sent at once
	mustReceive(t, b, "the way is known", a.LocalAddr())
	const readers, each = 8, 50
	var mu sync.Mutex
	got := map[string]int{}
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			buf := make([]byte, 100)
			for range each {
				n, _, err := b.ReadFrom(buf)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				got[string(buf[:n])]++
				mu.Unlock()
			}
		})
	}
	for i := range readers * each {
		mustSend(t, a, fmt.Sprint(i), b.LocalAddr())
	}
	all.Wait()
	if len(got) != readers*each {
		t.Errorf("%d different datagrams were read, want %d", len(got), readers*each)
	}
}

func packetRacyDeadlines(t *testing.T, a, b net.PacketConn) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			buf := make([]byte, 100)
			for range 20 {
				a.SetReadDeadline(time.Now().Add(time.Duration(i+1) * time.Millisecond))
				if _, _, err := a.ReadFrom(buf); err != nil {
					wantTimeout(t, err)
				}
			}
		})
		all.Go(func() {
			for range 20 {
				mustSend(t, b, "x", a.LocalAddr())
				time.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()
}

func packetConcurrentCalls(t *testing.T, a, b net.PacketConn) {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { a.ReadFrom(make([]byte, 100)) })
		all.Go(func() { a.WriteTo(make([]byte, 100), b.LocalAddr()) })
		all.Go(func() { a.SetDeadline(time.Now().Add(10 * time.Millisecond)) })
		all.Go(func() { a.SetReadDeadline(time.Now().Add(10 * time.Millisecond)) })
		all.Go(func() { a.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)) })
		all.Go(func() { a.LocalAddr() })
	}
	all.Wait()
}

func packetErrors(t *testing.T, a, b net.PacketConn) {
	_, err := a.WriteTo([]byte("x"), nil)
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "write" || op.Net != "udp" || op.Source.String() != a.LocalAddr().String() {
		t.Errorf("WriteTo(nil): %#v, want an OpError of a write", err)
	}
	a.SetReadDeadline(time.Unix(1, 0))
	_, _, err = a.ReadFrom(nil)
	if !errors.As(err, &op) || op.Op != "read" || op.Net != "udp" || op.Source.String() != a.LocalAddr().String() || op.Addr != nil {
		t.Errorf("ReadFrom: %#v, want an OpError of a read", err)
	}
}
