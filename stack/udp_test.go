package stack_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"loam/link/pipe"
	"loam/stack"
)

// A datagram of every size that IPv4 permits arrives complete, in fragments if it exceeds
// the MTU.
func TestUDPSizes(t *testing.T) {
	p := newPair(t, stack.Config{}, pipe.Config{})
	server := mustListenPacket(t, p.b, "10.0.0.2:53")
	client, err := p.a.Dial("udp", "10.0.0.2:53")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 70000)
	for _, size := range []int{0, 1, 2, 100, 1471, 1472, 1473, 2952, 2953, 9000, 40001, stack.MaxUDP} {
		sent := randomBytes(size)
		if _, err := client.Write(sent); err != nil {
			t.Fatalf("write %d: %v", size, err)
		}
		server.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, from, err := server.ReadFrom(buf)
		if err != nil || !bytes.Equal(buf[:n], sent) {
			t.Fatalf("size %d: received %d bytes, %v", size, n, err)
		}
		if from.String() != client.LocalAddr().String() {
			t.Errorf("from %v, want %v", from, client.LocalAddr())
		}
	}
	if _, err := client.Write(make([]byte, stack.MaxUDP+1)); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("a datagram that is too long: %v, want EMSGSIZE", err)
	}
}

// A connected socket gets an error if the port has no listener (RFC 1122 section
// 4.1.3.3).
func TestUDPNobodyListens(t *testing.T) {
	p := newPair(t, stack.Config{}, pipe.Config{})
	c, err := p.a.Dial("udp", "10.0.0.2:9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("anybody?"))
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("read: %v, want ECONNREFUSED", err)
	}
}

// A host that does not answer ARP is unreachable. This may be transient, so as on Linux a
// socket gets no error. A missing route is reported at once.
func TestUDPNoHost(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c, err := w.s.Dial("udp", "10.0.0.77:9")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		mustWrite(t, c, "anybody?")
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v, want nothing until the deadline", err)
		}
		w.wantCount("the datagram is dropped", stack.NeighFailed, 1)
		if _, err := w.s.Dial("udp", "192.0.2.1:9"); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("dial without a route: %v, want ENETUNREACH", err)
		}
	})
}

func TestPing(t *testing.T) {
	p := newPair(t, stack.Config{}, pipe.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, size := range []int{0, 56, 1472, 1473, stack.MaxPing} {
		r, err := p.a.Ping(ctx, addrB, size)
		if err != nil || r.Len != size || r.From != addrB {
			t.Errorf("ping with %d bytes: %+v, %v", size, r, err)
		}
	}
	for _, self := range []string{"127.0.0.1", "127.1.2.3", "10.0.0.1"} {
		if r, err := p.a.Ping(ctx, netip.MustParseAddr(self), 56); err != nil || r.From.String() != self {
			t.Errorf("ping %s: %+v, %v", self, r, err)
		}
	}
}

func mustListenPacket(t testing.TB, s *stack.Stack, address string) net.PacketConn {
	t.Helper()
	c, err := s.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func randomBytes(n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	b := make([]byte, n)
	r.Read(b)
	return b
}
