package posix

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// echoRequest is a message of the ICMP of a family, without a checksum.
func echoRequest(family int, seq uint16, data string) []byte {
	b := []byte{8, 0, 0, 0, 0, 0}
	if family == syscall.AF_INET6 {
		b[0] = 128
	}
	return append(binary.BigEndian.AppendUint16(b, seq), data...)
}

func loopbackOf(family int, port uint16) Address {
	if family == syscall.AF_INET6 {
		return Address{Family: syscall.AF_INET6, IP: netip.AddrPortFrom(netip.IPv6Loopback(), port)}
	}
	return localhost(port)
}

// icmp(7): the socket's port is the identifier, and what is read is a message.
func TestPingSocket(t *testing.T) {
	for family, reply := range map[int]byte{syscall.AF_INET: 0, syscall.AF_INET6: 129} {
		p := process(t)
		s := fd(t)(p.Socket(family, syscall.SOCK_DGRAM, pingProtocol(family)))
		ok(t, p.Bind(s, loopbackOf(family, 77)))
		if name, _ := p.GetSockName(s); name != loopbackOf(family, 77) {
			t.Errorf("it is at %v", name)
		}
		n, errno := p.Send(s, echoRequest(family, 5, "data"), Outgoing{To: loopbackOf(family, 9)})
		if ok(t, errno); n != 12 {
			t.Errorf("%d bytes are sent", n)
		}
		b := make([]byte, 100)
		r, errno := p.Recv(s, b, 0)
		ok(t, errno)
		if r.N != 12 || b[0] != reply || binary.BigEndian.Uint16(b[4:]) != 77 || string(b[8:12]) != "data" || r.From != loopbackOf(family, 0) {
			t.Errorf("received %x from %v", b[:r.N], r.From)
		}
		name := map[int]string{syscall.AF_INET: "icmp", syscall.AF_INET6: "icmp6"}[family]
		if text := ProcNet[name](p); strings.Count(text, "\n") != 2 || !strings.Contains(text, ":004D ") {
			t.Errorf("/proc/net/%s:\n%s", name, text)
		}
		other := fd(t)(p.Socket(family, syscall.SOCK_DGRAM, pingProtocol(family)))
		ok(t, p.SetSockOpt(other, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, intValue(0)))
		wantErrno(t, p.Bind(other, loopbackOf(family, 77)), syscall.EADDRINUSE, "the same identifier")
		_, errno = p.Send(other, echoRequest(family, 5, ""), Outgoing{To: localhost(0)})
		if want := map[int]Errno{syscall.AF_INET: 0, syscall.AF_INET6: syscall.EAFNOSUPPORT}[family]; errno != want {
			t.Errorf("to an address of IPv4: %v, want %v", errno, want)
		}
	}
}

// raw(7): a socket hears from the time that it is made, and is known by its protocol.
func TestRawSocket(t *testing.T) {
	for family, header := range map[int]int{syscall.AF_INET: 20, syscall.AF_INET6: 0} {
		p := process(t)
		s := fd(t)(p.Socket(family, syscall.SOCK_RAW, 200))
		c := fd(t)(p.Socket(family, syscall.SOCK_RAW, 200))
		ok(t, p.Connect(c, loopbackOf(family, 0)))
		if _, errno := p.Send(c, []byte("hello"), Outgoing{}); errno != 0 {
			t.Fatal(errno)
		}
		b := make([]byte, 100)
		r, errno := p.Recv(s, b, 0)
		ok(t, errno)
		if string(b[header:r.N]) != "hello" || r.From != loopbackOf(family, 0) {
			t.Errorf("received %x from %v", b[:r.N], r.From)
		}
		name := map[int]string{syscall.AF_INET: "raw", syscall.AF_INET6: "raw6"}[family]
		if text := ProcNet[name](p); strings.Count(text, "\n") != 3 || !strings.Contains(text, ":00C8 ") {
			t.Errorf("/proc/net/%s:\n%s", name, text)
		}
		own, other := p.procSockstat(), p.procSockstat6()
		if family == syscall.AF_INET6 {
			own, other = other, own
		}
		if !strings.Contains(own, ": inuse 2\nFRAG") || strings.Contains(other, "inuse 2") {
			t.Errorf("/proc/net/sockstat of the family:\n%sand of the other:\n%s", own, other)
		}
	}
}

// ICMP_FILTER and ICMP6_FILTER are as long as they are, and may be set in part.
func TestTypeFilters(t *testing.T) {
	p := process(t)
	for family, at := range map[int]struct{ level, length int }{
		syscall.AF_INET: {solRaw, 4}, syscall.AF_INET6: {syscall.IPPROTO_ICMPV6, 32},
	} {
		s := fd(t)(p.Socket(family, syscall.SOCK_RAW, pingProtocol(family)))
		ok(t, p.SetSockOpt(s, at.level, icmpFilter, []byte{1, 2, 3, 4}))
		ok(t, p.SetSockOpt(s, at.level, icmpFilter, []byte{9}))
		got, errno := p.GetSockOpt(s, at.level, icmpFilter)
		if want := append([]byte{9, 2, 3, 4}, make([]byte, at.length-4)...); errno != 0 || !slices.Equal(got, want) {
			t.Errorf("the filter is % x, %v; want % x", got, errno, want)
		}
	}
}
