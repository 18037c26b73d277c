//go:build linux

package interop

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/stack"
)

// TCP Fast Open (RFC 7413) between Loam and the kernel, in both directions: the client requests a cookie, and then sends data in
// its SYN, which the server answers.

func newFastLab(t *testing.T) *lab {
	l := newLab(t, setup{})
	l.sysctl("tcp_fastopen", "3")
	l.meet()
	return l
}

// fastExchange sends a request from a client to a server that answers, and returns the connection of the server.
func (l *lab) fastExchange(client net.Conn, accept func() (net.Conn, error)) {
	l.Helper()
	defer client.Close()
	server, err := accept()
	l.must(err)
	defer server.Close()
	b := make([]byte, 5)
	_, err = io.ReadFull(server, b)
	l.must(err)
	_, err = server.Write(b)
	l.must(err)
	l.must(server.Close())
	if got, err := io.ReadAll(client); string(got) != "hello" || err != nil {
		l.Errorf("the client has read %q, %v", got, err)
	}
}

func (l *lab) wantCounts(counters map[stack.Counter]uint64) {
	l.Helper()
	all := l.stack.Counters()
	for c, want := range counters {
		if got := all.Get(c); got != want {
			l.Errorf("%v is %d, want %d", c, got, want)
		}
	}
}

func TestFastOpenClient(t *testing.T) {
	l := newFastLab(t)
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), linux.IPPROTO_TCP, linux.TCP_FASTOPEN, 5) })
		return err
	}}
	server, err := config.Listen(l.ctx, "tcp4", netip.AddrPortFrom(l.linux.addr, 0).String())
	l.must(err)
	defer server.Close()
	for _, want := range []int{0, 5} {
		c, n, err := l.stack.DialFast(netip.AddrPort{}, netip.MustParseAddrPort(server.Addr().String()), stack.TCPOptions{}, []byte("hello"))
		l.must(err)
		if n != want {
			t.Fatalf("%d bytes in the SYN, want %d", n, want)
		}
		if n == 0 {
			_, err = c.Write([]byte("hello"))
			l.must(err)
		}
		l.fastExchange(c, server.Accept)
	}
	l.wantCounts(map[stack.Counter]uint64{stack.TCPFastActive: 1, stack.TCPFastActiveFail: 0})
}

func TestFastOpenServer(t *testing.T) {
	l := newFastLab(t)
	server, err := l.stack.ListenTCP(netip.AddrPortFrom(l.loam.addr, 80), 5, stack.TCPOptions{FastOpen: 5})
	l.must(err)
	defer server.Close()
	for range 2 {
		s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		l.must(err)
		to := &syscall.SockaddrInet4{Port: 80, Addr: l.loam.addr.As4()}
		l.must(syscall.Sendto(s, []byte("hello"), linux.MSG_FASTOPEN, to))
		f := os.NewFile(uintptr(s), "client")
		client, err := net.FileConn(f)
		l.must(err)
		f.Close()
		l.fastExchange(client, server.Accept)
	}
	l.wantCounts(map[stack.Counter]uint64{stack.TCPFastRequests: 1, stack.TCPFastPassive: 1, stack.TCPFastPassiveFail: 0})
}
