package stack_test

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
)

// Most tests of this package use two stacks on one pipe: a at 10.0.0.1, and b at 10.0.0.2. They also
// have 2001:db8::1 and 2001:db8::2.

var (
	addrA  = netip.MustParseAddr("10.0.0.1")
	addrB  = netip.MustParseAddr("10.0.0.2")
	addrA6 = netip.MustParseAddr("2001:db8::1")
	addrB6 = netip.MustParseAddr("2001:db8::2")
)

// addr6 returns the IPv6 address of the host with the given IPv4 address.
func addr6(a netip.Addr) netip.Addr {
	b := addrA6.As16()
	b[15] = a.As4()[3]
	return netip.AddrFrom16(b)
}

type pair struct{ a, b *stack.Stack }

// newPair creates the two stacks and checks at the end of the test that nothing has
// leaked.
func newPair(t testing.TB, c stack.Config, p pipe.Config) *pair {
	t.Helper()
	link.Track(true)
	ring.Track(true)
	a, b := pipe.New(p)
	pr := &pair{newHost(t, c, a, addrA), newHost(t, c, b, addrB)}
	t.Cleanup(func() {
		pr.a.Close()
		pr.b.Close()
		checkLeaks(t)
	})
	return pr
}

func newHost(t testing.TB, c stack.Config, dev link.Device, addr netip.Addr) *stack.Stack {
	t.Helper()
	s := stack.New(c)
	if _, err := s.Attach(dev, stack.InterfaceConfig{Name: "eth0", NoDetection: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddAddress("eth0", netip.PrefixFrom(addr, 24)); err != nil {
		t.Fatal(err)
	}
	if err := s.AddAddress("eth0", netip.PrefixFrom(addr6(addr), 64)); err != nil && !errors.Is(err, stack.ErrFamily) {
		t.Fatal(err)
	}
	return s
}

// An object still allocated after five seconds is a leak: on a busy machine programs take
// long to end.
const (
	leakLooks = 500
	leakPause = 10 * time.Millisecond
)

func checkLeaks(t testing.TB) {
	t.Helper()
	if n := left(ring.Outstanding); n != 0 {
		t.Errorf("%d chunks of connection buffers left behind", n)
	}
	if n := left(link.Outstanding); n != 0 {
		t.Errorf("%d frames left behind", n)
	}
	if n := stackGoroutines(); n != "" {
		t.Errorf("goroutines left behind:\n%s", n)
	}
}

// left returns the number of buffer chunks or frames that were not freed, after giving
// programs time to free them. A program that is reading when its connection is closed
// frees the data when its read returns.
func left(outstanding func() int) (n int) {
	for range leakLooks {
		if n = outstanding(); n == 0 {
			return 0
		}
		time.Sleep(leakPause)
	}
	return n
}

// stackGoroutines lists the goroutines still running in a loop of a stack, after giving
// them time to end.
func stackGoroutines() string {
	var left []string
	for range leakLooks {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		left = left[:0]
		for _, g := range strings.Split(string(buf), "\n\n") {
			if strings.Contains(g, "loam/stack.(*") && strings.Contains(g, ").loop(") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return ""
		}
		time.Sleep(leakPause)
	}
	return strings.Join(left, "\n\n")
}

// connected returns a TCP connection between two stacks, or over the loopback of one.
func connected(t testing.TB, c stack.Config, p pipe.Config, loopback bool) (client, server net.Conn) {
	t.Helper()
	pr := newPair(t, c, p)
	link.Track(false)
	ring.Track(false)
	s, address := pr.b, "10.0.0.2:80"
	if loopback {
		s, address = pr.a, "127.0.0.1:80"
	}
	l, err := s.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if client, err = pr.a.Dial("tcp", address); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}
