package posix

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
)

// pktInfo returns a control message with struct in_pktinfo or in6_pktinfo.
func pktInfo(source string, index int) Control {
	a := netip.MustParseAddr(source)
	number := binary.NativeEndian.AppendUint32(nil, uint32(index))
	if a.Is6() {
		return Control{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_PKTINFO, Data: append(a.AsSlice(), number...)}
	}
	return Control{Level: linux.IPPROTO_IP, Type: linux.IP_PKTINFO, Data: append(append(number, a.AsSlice()...), 0, 0, 0, 0)}
}

func control(level, typ int, data ...byte) Control {
	return Control{Level: level, Type: typ, Data: data}
}

// ip(7): control messages set the source, TTL and TOS of a datagram. Unknown messages are rejected.
func TestSendControl(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(s, localhost(0)))
	name, _ := p.GetSockName(s)
	for _, o := range []int{linux.IP_RECVTTL, linux.IP_RECVTOS} {
		ok(t, p.SetSockOpt(s, linux.IPPROTO_IP, o, socket.IntValue(1)))
	}
	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	send := func(list ...Control) Errno {
		_, errno := p.Send(c, []byte("x"), Outgoing{To: name, Control: list})
		return errno
	}
	ok(t, send(pktInfo("127.0.0.2", 1), control(0, linux.IP_TTL, socket.IntValue(9)...), control(0, linux.IP_TOS, 2)))
	r, errno := p.Recv(s, make([]byte, 1), 0)
	ok(t, errno)
	if got := r.From.IP.Addr().String(); got != "127.0.0.2" || len(r.Control) != 2 || r.Control[0].Data[0] != 9 || r.Control[1].Data[0] != 2 {
		t.Errorf("from %s with %+v, want 127.0.0.2, TTL 9, TOS 2", got, r.Control)
	}
	ok(t, send(pktInfo("0.0.0.0", 0), control(0, linux.IP_TOS, socket.IntValue(4)...), control(linux.SOL_SOCKET, linux.SCM_RIGHTS), control(linux.IPPROTO_IPV6, 99)))
	wantErrno(t, send(pktInfo("192.0.2.1", 0)), linux.EINVAL, "an address of another")
	wantErrno(t, send(pktInfo("127.0.0.1", 77)), linux.ENODEV, "an index of no interface")
	for what, c := range map[string]Control{
		"half an in_pktinfo":    control(0, linux.IP_PKTINFO, 1, 2, 3, 4),
		"no number":             control(0, linux.IP_TTL, 1),
		"a TTL of 0":            control(0, linux.IP_TTL, socket.IntValue(0)...),
		"a TOS of 256":          control(0, linux.IP_TOS, socket.IntValue(256)...),
		"no TOS":                control(0, linux.IP_TOS),
		"another type":          control(0, 99),
		"another of SOL_SOCKET": control(linux.SOL_SOCKET, 99),
		"another of UDP":        control(linux.IPPROTO_UDP, 99, 0, 1),
		"no length":             control(linux.IPPROTO_UDP, linux.UDP_SEGMENT, 1),
	} {
		wantErrno(t, send(c), linux.EINVAL, what)
	}
}

// Control messages of IPv6 (RFC 3542 section 6) set the source, hop limit and traffic class. The value -1 selects the
// socket's own value.
func TestSendControl6(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(s, inet6("[::]:0")))
	name, _ := p.GetSockName(s)
	for _, o := range []int{linux.IPV6_RECVHOPLIMIT, linux.IPV6_RECVTCLASS} {
		ok(t, p.SetSockOpt(s, linux.IPPROTO_IPV6, o, socket.IntValue(1)))
	}
	c := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	send := func(list ...Control) Errno {
		_, errno := p.Send(c, []byte("x"), Outgoing{To: inet6(netip.AddrPortFrom(netip.IPv6Loopback(), name.IP.Port()).String()), Control: list})
		return errno
	}
	ok(t, send(pktInfo("::1", 1), control(linux.IPPROTO_IPV6, linux.IPV6_HOPLIMIT, socket.IntValue(9)...), control(linux.IPPROTO_IPV6, linux.IPV6_TCLASS, socket.IntValue(-1)...)))
	r, errno := p.Recv(s, make([]byte, 1), 0)
	ok(t, errno)
	if len(r.Control) != 2 || r.Control[0].Data[0] != 9 || r.Control[1].Data[0] != 0 {
		t.Errorf("%+v, want a hop limit of 9", r.Control)
	}
	wantErrno(t, send(pktInfo("2001:db8::1", 0)), linux.EINVAL, "an address of another")
	wantErrno(t, send(pktInfo("::ffff:127.0.0.1", 0)), linux.EINVAL, "an address of IPv4")
	wantErrno(t, send(control(linux.IPPROTO_IPV6, linux.IPV6_PKTINFO, 1)), linux.EINVAL, "half an in6_pktinfo")
	wantErrno(t, send(control(linux.IPPROTO_IPV6, 99)), linux.EINVAL, "another type")
}

// udp(7): a send is split into datagrams of the length set by UDP_SEGMENT, for the socket or for one
// call.
func TestSegments(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(s, localhost(0)))
	name, _ := p.GetSockName(s)
	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	send := func(n int, list ...Control) Errno {
		got, errno := p.Send(c, make([]byte, n), Outgoing{To: name, Control: list})
		if errno == 0 && got != n {
			t.Errorf("%d bytes sent, want %d", got, n)
		}
		return errno
	}
	wants := func(sizes ...int) {
		t.Helper()
		for _, want := range sizes {
			r, errno := p.Recv(s, make([]byte, 100), 0)
			if ok(t, errno); r.N != want {
				t.Errorf("a datagram of %d bytes, want %d", r.N, want)
			}
		}
	}
	pieces := func(n uint16) Control {
		return control(linux.IPPROTO_UDP, linux.UDP_SEGMENT, binary.NativeEndian.AppendUint16(nil, n)...)
	}
	set := func(n int) Errno { return p.SetSockOpt(c, linux.IPPROTO_UDP, linux.UDP_SEGMENT, socket.IntValue(n)) }
	ok(t, send(25, pieces(10)))
	wants(10, 10, 5)
	ok(t, send(20, pieces(10)))
	wants(10, 10)
	ok(t, send(0, pieces(10)))
	wants(0)
	wantErrno(t, send(129, pieces(1)), linux.EINVAL, "129 segments")
	wantErrno(t, set(1<<16), linux.EINVAL, "a length of more than 16 bits")
	ok(t, set(20))
	value, errno := p.GetSockOpt(c, linux.IPPROTO_UDP, linux.UDP_SEGMENT)
	if ok(t, errno); value[0] != 20 {
		t.Errorf("the option reads %v, want 20", value)
	}
	ok(t, send(25))
	wants(20, 5)
	ok(t, send(25, pieces(15)))
	wants(15, 10)
}

// groupReq encodes a struct group_req (RFC 3678).
func groupReq(group string, index int) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(index))
	a := netip.MustParseAddr(group)
	address := socket.Inet(netip.AddrPortFrom(a, 0))
	if a.Is6() {
		address = inet6("[" + group + "]:0")
	}
	return append(address.Append(b), make([]byte, 136)...)[:136]
}

// RFC 3678 section 5.1: the same options join groups of both families.
func TestJoinGroup(t *testing.T) {
	p := process(t)
	for _, c := range []struct {
		domain, level      int
		group, none, other string
		wrong              Errno
	}{
		{linux.AF_INET, linux.IPPROTO_IP, "239.1.2.3", "127.0.0.1", "ff02::114", linux.EINVAL},
		{linux.AF_INET6, linux.IPPROTO_IPV6, "ff02::114", "::1", "239.1.2.3", linux.EADDRNOTAVAIL},
	} {
		s := fd(t)(p.Socket(c.domain, linux.SOCK_DGRAM, 0))
		join := func(b []byte) Errno { return p.SetSockOpt(s, c.level, linux.MCAST_JOIN_GROUP, b) }
		ok(t, join(groupReq(c.group, 1)))
		wantErrno(t, join(groupReq(c.group, 1)), linux.EADDRINUSE, "joining twice")
		wantErrno(t, join(groupReq(c.group, 77)), linux.ENODEV, "on no interface")
		wantErrno(t, join(groupReq(c.group, 1)[:100]), linux.EINVAL, "half a group")
		wantErrno(t, join(groupReq(c.none, 1)), linux.EINVAL, "no group")
		wantErrno(t, join(groupReq(c.other, 1)), c.wrong, "a group of the other family")
		ok(t, p.SetSockOpt(s, c.level, linux.MCAST_LEAVE_GROUP, groupReq(c.group, 1)))
	}
}

// UDP_GRO can be set on UDP sockets only, and datagrams are still read one by one.
func TestGRO(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	for _, set := range []int{0, 5} {
		ok(t, p.SetSockOpt(s, linux.IPPROTO_UDP, linux.UDP_GRO, socket.IntValue(set)))
		got, errno := p.GetSockOpt(s, linux.IPPROTO_UDP, linux.UDP_GRO)
		if want := socket.BoolValue(set != 0); errno != 0 || !slices.Equal(got, want) {
			t.Errorf("set to %d it is %v, %v, want %v", set, got, errno, want)
		}
	}
	ok(t, p.Bind(s, localhost(7000)))
	for range 2 {
		_, errno := p.Send(s, []byte("x"), Outgoing{To: localhost(7000)})
		ok(t, errno)
	}
	for range 2 {
		if n, errno := p.Read(s, make([]byte, 10)); n != 1 || errno != 0 {
			t.Errorf("read %d bytes, %v", n, errno)
		}
	}
	ping := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, linux.IPPROTO_ICMP))
	wantErrno(t, p.SetSockOpt(ping, linux.IPPROTO_UDP, linux.UDP_GRO, socket.IntValue(1)), linux.ENOPROTOOPT, "of ICMP")
}
