package posix

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func inet6(s string) Address {
	return Address{Family: syscall.AF_INET6, IP: netip.MustParseAddrPort(s)}
}

// The scope of an address stands behind it.
func TestAddressForms6(t *testing.T) {
	a := inet6("[fe80::1%3]:80")
	want := append([]byte{10, 0, 0, 80, 0, 0, 0, 0, 0xfe, 0x80}, make([]byte, 13)...)
	want = append(want, 1, 3, 0, 0, 0)
	if got := a.Append(nil); !slices.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
	if back, errno := ParseAddress(want); back != a || errno != 0 {
		t.Errorf("%+v, %v", back, errno)
	}
}

// ipv6(7): a socket of AF_INET6 hears IPv4, too, whose addresses are mapped, unless
// IPV6_V6ONLY says no; that is said before it is bound.
func TestDualStack(t *testing.T) {
	p := process(t)
	l := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0))
	if a, _ := p.GetSockName(l); a != inet6("[::]:0") {
		t.Errorf("not bound: %v", a)
	}
	ok(t, p.Bind(l, inet6("[::]:0")))
	wantErrno(t, p.SetSockOpt(l, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, intValue(1)), syscall.EINVAL, "IPV6_V6ONLY when it is bound")
	ok(t, p.Listen(l, 5))
	name, _ := p.GetSockName(l)
	port := name.IP.Port()
	if name.IP.Addr() != netip.IPv6Unspecified() {
		t.Errorf("it listens at %v", name)
	}
	for _, to := range []Address{localhost(port), {Family: syscall.AF_INET6, IP: netip.AddrPortFrom(netip.IPv6Loopback(), port)}} {
		c := fd(t)(p.Socket(int(to.Family), syscall.SOCK_STREAM, 0))
		ok(t, p.Connect(c, to))
		in, peer, errno := p.Accept4(l, 0)
		ok(t, errno)
		local, _ := p.GetSockName(in)
		want := to.IP.Addr()
		if want.Is4() {
			want = netip.AddrFrom16(want.As16())
		}
		if peer.Family != syscall.AF_INET6 || local.IP.Addr() != want || peer.IP.Addr() != want {
			t.Errorf("from %v: local %v, peer %v", to, local, peer)
		}
	}
	if text := p.procTCP6(); !strings.Contains(text, "00000000000000000000000000000000:") || strings.Count(text, "\n") < 4 {
		t.Errorf("/proc/net/tcp6:\n%s", text)
	}
	mapped := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0))
	to := Address{Family: syscall.AF_INET6, IP: netip.AddrPortFrom(netip.MustParseAddr("::ffff:127.0.0.1"), port)}
	ok(t, p.Connect(mapped, to))
	if a, _ := p.GetPeerName(mapped); a != to {
		t.Errorf("a mapped peer is %v", a)
	}
	only := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0))
	ok(t, p.SetSockOpt(only, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, intValue(1)))
	wantErrno(t, p.Connect(only, to), syscall.ENETUNREACH, "a mapped address with IPV6_V6ONLY")
	wantErrno(t, p.Bind(only, inet6("[::ffff:127.0.0.1]:0")), syscall.EINVAL, "to bind one")
	wantErrno(t, p.Bind(only, localhost(0)), syscall.EAFNOSUPPORT, "an address of AF_INET")
	four := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))
	wantErrno(t, p.SetSockOpt(four, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, intValue(1)), syscall.ENOPROTOOPT, "on AF_INET")
}

// RFC 3542: what comes with a datagram, as it is asked for.
func TestControl6(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM, 0))
	ok(t, p.Bind(s, inet6("[::1]:0")))
	name, _ := p.GetSockName(s)
	for _, o := range []int{ipv6RecvPktInfo, ipv6RecvHopLimit, ipv6RecvTClass} {
		ok(t, p.SetSockOpt(s, syscall.IPPROTO_IPV6, o, intValue(1)))
	}
	c := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM, 0))
	ok(t, p.SetSockOpt(c, syscall.IPPROTO_IPV6, syscall.IPV6_UNICAST_HOPS, intValue(7)))
	ok(t, p.SetSockOpt(c, syscall.IPPROTO_IPV6, ipv6TClass, intValue(0x20)))
	if _, errno := p.Send(c, []byte("hello"), Outgoing{To: name}); errno != 0 {
		t.Fatal(errno)
	}
	b := make([]byte, 10)
	r, errno := p.Recv(s, b, 0)
	ok(t, errno)
	one := netip.IPv6Loopback().As16()
	want := []Control{
		{Level: syscall.IPPROTO_IPV6, Type: ipv6PktInfo, Data: binary.NativeEndian.AppendUint32(one[:], 1)},
		{Level: syscall.IPPROTO_IPV6, Type: ipv6HopLimit, Data: intValue(7)},
		{Level: syscall.IPPROTO_IPV6, Type: ipv6TClass, Data: intValue(0x20)},
	}
	same := slices.EqualFunc(r.Control, want, func(a, b Control) bool {
		return a.Level == b.Level && a.Type == b.Type && slices.Equal(a.Data, b.Data)
	})
	if !same || string(b[:r.N]) != "hello" {
		t.Errorf("%q, %+v", b[:r.N], r.Control)
	}
}

// /proc/net/if_inet6 and ipv6_route, as proc(5) and net.Interfaces know them.
func TestProcNet6(t *testing.T) {
	p := process(t)
	if got := p.procIfInet6(); got != "00000000000000000000000000000001 01 80 10 80       lo\n" {
		t.Errorf("if_inet6: %q", got)
	}
	if got := p.procIPv6Route(); !strings.HasPrefix(got, "00000000000000000000000000000001 80 ") {
		t.Errorf("ipv6_route: %q", got)
	}
	if got := p.procIGMP6(); !strings.HasPrefix(got, "1    lo              ff020000000000000000000000000001     1 ") {
		t.Errorf("igmp6: %q", got)
	}
}

// handedOver is a connection of the host's of which only the end is asked for.
type handedOver struct {
	HostTCP
	closed bool
}

func (h *handedOver) Close(abort, refused bool) { h.closed = true }

// A connection that the host hands over is one of IPv4: a socket of AF_INET6 accepts it
// with addresses that are mapped, unless it is for IPv6 only.
func TestHandedToDualStack(t *testing.T) {
	for _, v6Only := range []bool{false, true} {
		p := process(t)
		l := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0))
		ok(t, p.SetSockOpt(l, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, boolValue(v6Only)))
		ok(t, p.Bind(l, inet6("[::]:0")))
		ok(t, p.Listen(l, 5))
		name, _ := p.GetSockName(l)
		h := &handedOver{}
		p.Hand(h, netip.AddrPortFrom(netip.MustParseAddr("10.0.2.15"), name.IP.Port()), netip.MustParseAddrPort("10.0.2.2:4000"))
		_, peer, errno := p.Accept4(l, 0)
		switch {
		case v6Only && (!h.closed || errno != syscall.EAGAIN):
			t.Errorf("with IPV6_V6ONLY: closed %v, %v", h.closed, errno)
		case !v6Only && (h.closed || errno != 0 || peer != inet6("[::ffff:10.0.2.2]:4000")):
			t.Errorf("closed %v, from %v, %v", h.closed, peer, errno)
		}
	}
}

// A listener for IPv6 alone, before any other, is in no table of those that hear IPv4.
func TestListenerFor6Alone(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0))
	ok(t, p.Bind(s, inet6("[::1]:0")))
	ok(t, p.Listen(s, 1))
	ok(t, p.Close(s))
}
