package posix

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
)

// echoRequest returns an ICMP echo request of a family, without a checksum.
func echoRequest(family int, seq uint16, data string) []byte {
	b := []byte{8, 0, 0, 0, 0, 0}
	if family == linux.AF_INET6 {
		b[0] = 128
	}
	return append(binary.BigEndian.AppendUint16(b, seq), data...)
}

func loopbackOf(family int, port uint16) Address {
	if family == linux.AF_INET6 {
		return Address{Family: linux.AF_INET6, IP: netip.AddrPortFrom(netip.IPv6Loopback(), port)}
	}
	return localhost(port)
}

// icmp(7): the port of a socket is the identifier, and a read returns an ICMP message.
func TestPingSocket(t *testing.T) {
	for family, reply := range map[int]byte{linux.AF_INET: 0, linux.AF_INET6: 129} {
		p := process(t)
		s := fd(t)(p.Socket(family, linux.SOCK_DGRAM, echoProtocol(family)))
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
		name := map[int]string{linux.AF_INET: "icmp", linux.AF_INET6: "icmp6"}[family]
		if text := ProcNet[name](p); strings.Count(text, "\n") != 2 || !strings.Contains(text, ":004D ") {
			t.Errorf("/proc/net/%s:\n%s", name, text)
		}
		other := fd(t)(p.Socket(family, linux.SOCK_DGRAM, echoProtocol(family)))
		ok(t, p.SetSockOpt(other, linux.SOL_SOCKET, linux.SO_REUSEADDR, socket.IntValue(0)))
		wantErrno(t, p.Bind(other, loopbackOf(family, 77)), linux.EADDRINUSE, "the same identifier")
		_, errno = p.Send(other, echoRequest(family, 5, ""), Outgoing{To: localhost(0)})
		if want := map[int]Errno{linux.AF_INET: 0, linux.AF_INET6: linux.EAFNOSUPPORT}[family]; errno != want {
			t.Errorf("to an address of IPv4: %v, want %v", errno, want)
		}
	}
}

// raw(7): a socket receives the packets of its protocol from its creation on.
func TestRawSocket(t *testing.T) {
	for family, header := range map[int]int{linux.AF_INET: 20, linux.AF_INET6: 0} {
		p := process(t)
		s := fd(t)(p.Socket(family, linux.SOCK_RAW, 200))
		c := fd(t)(p.Socket(family, linux.SOCK_RAW, 200))
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
		name := map[int]string{linux.AF_INET: "raw", linux.AF_INET6: "raw6"}[family]
		if text := ProcNet[name](p); strings.Count(text, "\n") != 3 || !strings.Contains(text, ":00C8 ") {
			t.Errorf("/proc/net/%s:\n%s", name, text)
		}
		own, other := ProcNet["sockstat"](p), ProcNet["sockstat6"](p)
		if family == linux.AF_INET6 {
			own, other = other, own
		}
		if !strings.Contains(own, ": inuse 2\nFRAG") || strings.Contains(other, "inuse 2") {
			t.Errorf("/proc/net/sockstat of the family:\n%sand of the other:\n%s", own, other)
		}
	}
}

// ICMP_FILTER and ICMP6_FILTER have different lengths, and can be set in part.
func TestTypeFilters(t *testing.T) {
	p := process(t)
	for family, at := range map[int]struct{ level, length int }{
		linux.AF_INET: {linux.SOL_RAW, 4}, linux.AF_INET6: {linux.IPPROTO_ICMPV6, 32},
	} {
		s := fd(t)(p.Socket(family, linux.SOCK_RAW, echoProtocol(family)))
		ok(t, p.SetSockOpt(s, at.level, linux.ICMP_FILTER, []byte{1, 2, 3, 4}))
		ok(t, p.SetSockOpt(s, at.level, linux.ICMP_FILTER, []byte{9}))
		got, errno := p.GetSockOpt(s, at.level, linux.ICMP_FILTER)
		if want := append([]byte{9, 2, 3, 4}, make([]byte, at.length-4)...); errno != 0 || !slices.Equal(got, want) {
			t.Errorf("the filter is % x, %v; want % x", got, errno, want)
		}
	}
}

// echoProtocol returns the number of the ICMP protocol of a family.
func echoProtocol(family int) int {
	if family == linux.AF_INET6 {
		return linux.IPPROTO_ICMPV6
	}
	return linux.IPPROTO_ICMP
}
