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

func inet6(s string) Address {
	return Address{Family: linux.AF_INET6, IP: netip.MustParseAddrPort(s)}
}

// The scope ID (the interface of a link-local address) is the last field of struct sockaddr_in6.
func TestAddressForms6(t *testing.T) {
	a := inet6("[fe80::1%3]:80")
	want := append([]byte{10, 0, 0, 80, 0, 0, 0, 0, 0xfe, 0x80}, make([]byte, 13)...)
	want = append(want, 1, 3, 0, 0, 0)
	if got := a.Append(nil); !slices.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
	if back, errno := socket.ParseAddress(want); back != a || errno != 0 {
		t.Errorf("%+v, %v", back, errno)
	}
}

// ipv6(7): an AF_INET6 socket also receives IPv4, with mapped addresses, unless IPV6_V6ONLY was set
// before bind.
func TestDualStack(t *testing.T) {
	p := process(t)
	l := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_STREAM, 0))
	if a, _ := p.GetSockName(l); a != inet6("[::]:0") {
		t.Errorf("not bound: %v", a)
	}
	ok(t, p.Bind(l, inet6("[::]:0")))
	wantErrno(t, p.SetSockOpt(l, linux.IPPROTO_IPV6, linux.IPV6_V6ONLY, socket.IntValue(1)), linux.EINVAL, "IPV6_V6ONLY when it is bound")
	ok(t, p.Listen(l, 5))
	name, _ := p.GetSockName(l)
	port := name.IP.Port()
	if name.IP.Addr() != netip.IPv6Unspecified() {
		t.Errorf("it listens at %v", name)
	}
	for _, to := range []Address{localhost(port), {Family: linux.AF_INET6, IP: netip.AddrPortFrom(netip.IPv6Loopback(), port)}} {
		c := fd(t)(p.Socket(int(to.Family), linux.SOCK_STREAM, 0))
		ok(t, p.Connect(c, to))
		in, peer, errno := p.Accept4(l, 0)
		ok(t, errno)
		local, _ := p.GetSockName(in)
		want := to.IP.Addr()
		if want.Is4() {
			want = netip.AddrFrom16(want.As16())
		}
		if peer.Family != linux.AF_INET6 || local.IP.Addr() != want || peer.IP.Addr() != want {
			t.Errorf("from %v: local %v, peer %v", to, local, peer)
		}
	}
	if text := ProcNet["tcp6"](p); !strings.Contains(text, "00000000000000000000000000000000:") || strings.Count(text, "\n") < 4 {
		t.Errorf("/proc/net/tcp6:\n%s", text)
	}
	mapped := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_STREAM, 0))
	to := Address{Family: linux.AF_INET6, IP: netip.AddrPortFrom(netip.MustParseAddr("::ffff:127.0.0.1"), port)}
	ok(t, p.Connect(mapped, to))
	if a, _ := p.GetPeerName(mapped); a != to {
		t.Errorf("a mapped peer is %v", a)
	}
	only := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_STREAM, 0))
	ok(t, p.SetSockOpt(only, linux.IPPROTO_IPV6, linux.IPV6_V6ONLY, socket.IntValue(1)))
	wantErrno(t, p.Connect(only, to), linux.ENETUNREACH, "a mapped address with IPV6_V6ONLY")
	wantErrno(t, p.Bind(only, inet6("[::ffff:127.0.0.1]:0")), linux.EINVAL, "to bind one")
	wantErrno(t, p.Bind(only, localhost(0)), linux.EAFNOSUPPORT, "an address of AF_INET")
	four := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	wantErrno(t, p.SetSockOpt(four, linux.IPPROTO_IPV6, linux.IPV6_V6ONLY, socket.IntValue(1)), linux.ENOPROTOOPT, "on AF_INET")
}

// RFC 3542: a datagram is received with the control messages that were requested.
func TestControl6(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(s, inet6("[::1]:0")))
	name, _ := p.GetSockName(s)
	for _, o := range []int{linux.IPV6_RECVPKTINFO, linux.IPV6_RECVHOPLIMIT, linux.IPV6_RECVTCLASS} {
		ok(t, p.SetSockOpt(s, linux.IPPROTO_IPV6, o, socket.IntValue(1)))
	}
	c := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	ok(t, p.SetSockOpt(c, linux.IPPROTO_IPV6, linux.IPV6_UNICAST_HOPS, socket.IntValue(7)))
	ok(t, p.SetSockOpt(c, linux.IPPROTO_IPV6, linux.IPV6_TCLASS, socket.IntValue(0x20)))
	if _, errno := p.Send(c, []byte("hello"), Outgoing{To: name}); errno != 0 {
		t.Fatal(errno)
	}
	b := make([]byte, 10)
	r, errno := p.Recv(s, b, 0)
	ok(t, errno)
	one := netip.IPv6Loopback().As16()
	want := []Control{
		{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_PKTINFO, Data: binary.NativeEndian.AppendUint32(one[:], 1)},
		{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_HOPLIMIT, Data: socket.IntValue(7)},
		{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_TCLASS, Data: socket.IntValue(0x20)},
	}
	same := slices.EqualFunc(r.Control, want, func(a, b Control) bool {
		return a.Level == b.Level && a.Type == b.Type && slices.Equal(a.Data, b.Data)
	})
	if !same || string(b[:r.N]) != "hello" {
		t.Errorf("%q, %+v", b[:r.N], r.Control)
	}
}

// RFC 3542 section 6.2, ip(7): the sender chooses the source address of a datagram.
func TestSendFrom(t *testing.T) {
	p := process(t)
	own := netip.MustParseAddr("fd00::9")
	if err := p.net.AddAddress("lo", netip.PrefixFrom(own, 128)); err != nil {
		t.Fatal(err)
	}
	server := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(server, inet6("[::]:0")))
	name, _ := p.GetSockName(server)
	at := func(a string) Address {
		return Address{Family: linux.AF_INET6, IP: netip.AddrPortFrom(netip.MustParseAddr(a), name.IP.Port())}
	}
	six := func(a netip.Addr, index uint32) Control {
		b := a.As16()
		return Control{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_PKTINFO, Data: binary.NativeEndian.AppendUint32(b[:], index)}
	}
	four := Control{Level: linux.IPPROTO_IP, Type: linux.IP_PKTINFO, Data: []byte{0, 0, 0, 0, 127, 0, 0, 9, 0, 0, 0, 0}}
	client := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	for _, c := range []struct {
		sentence string
		to       Address
		from     Control
		want     string
	}{
		{"an address of ours", at("::1"), six(own, 0), "fd00::9"},
		{"and the link that it is on", at("::1"), six(own, 1), "fd00::9"},
		{"a link alone", at("::1"), six(netip.IPv6Unspecified(), 1), "::1"},
		{"nothing", at("::1"), six(netip.IPv6Unspecified(), 0), "::1"},
		{"a mapped address", at("::ffff:127.0.0.1"), six(netip.MustParseAddr("::ffff:127.0.0.7"), 0), "::ffff:127.0.0.7"},
		{"an address of IPv4", at("::ffff:127.0.0.1"), four, "::ffff:127.0.0.9"},
	} {
		if _, errno := p.Send(client, []byte("x"), Outgoing{To: c.to, Control: []Control{c.from}}); errno != 0 {
			t.Errorf("%s: %v", c.sentence, errno)
			continue
		}
		r, errno := p.Recv(server, make([]byte, 10), 0)
		if errno != 0 || r.From.IP.Addr().String() != c.want {
			t.Errorf("%s: from %v, %v; want %s", c.sentence, r.From.IP, errno, c.want)
		}
	}
	for sentence, c := range map[string]struct {
		from Control
		want Errno
	}{
		"another host's":     {six(netip.MustParseAddr("fd00::99"), 0), linux.EINVAL},
		"of another version": {four, linux.EINVAL},
		"no such link":       {six(own, 99), linux.ENODEV},
		"half a message":     {Control{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_PKTINFO, Data: make([]byte, 19)}, linux.EINVAL},
	} {
		_, errno := p.Send(client, []byte("x"), Outgoing{To: at("::1"), Control: []Control{c.from}})
		wantErrno(t, errno, c.want, sentence)
	}
	for _, o := range []socket.OptionName{{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MULTICAST_HOPS}, {Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_TTL}} {
		for _, n := range []int{0, 9, -1} {
			want := socket.IntValue(1)
			if n > 0 {
				want = socket.IntValue(n)
			}
			if n != 0 {
				ok(t, p.SetSockOpt(client, o.Level, o.Name, socket.IntValue(n)))
			}
			if v, errno := p.GetSockOpt(client, o.Level, o.Name); errno != 0 || !slices.Equal(v, want) {
				t.Errorf("option %v, set to %d, is %v, %v", o, n, v, errno)
			}
		}
	}
}

// /proc/net/if_inet6 and ipv6_route have the format of proc(5), which net.Interfaces parses.
func TestProcNet6(t *testing.T) {
	p := process(t)
	if got := ProcNet["if_inet6"](p); got != "00000000000000000000000000000001 01 80 10 80       lo\n" {
		t.Errorf("if_inet6: %q", got)
	}
	if got := ProcNet["ipv6_route"](p); !strings.HasPrefix(got, "00000000000000000000000000000001 80 ") {
		t.Errorf("ipv6_route: %q", got)
	}
	if got := ProcNet["igmp6"](p); !strings.HasPrefix(got, "1    lo              ff020000000000000000000000000001     1 ") {
		t.Errorf("igmp6: %q", got)
	}
}

// handedOver is a connection of the host that only records its Close.
type handedOver struct {
	HostTCP
	closed bool
}

func (h *handedOver) Close(abort, refused bool) { h.closed = true }

// An AF_INET6 socket accepts a host connection with IPv4-mapped addresses. An IPv6-only socket accepts
// it with IPv6 addresses.
func TestHandedToIPv6(t *testing.T) {
	for _, c := range []struct {
		name   string
		v6Only bool
		at     string
		peer   string // address of the peer as the program sees it; "": the connection is reset
	}{
		{"of both versions", false, "[::]:0", "[::ffff:10.0.2.2]:4000"},
		{"of IPv6 alone", true, "[::]:0", "[fd6c:6f61:6d00::2]:4000"},
		{"at the address of IPv6", false, "[fd6c:6f61:6d00::15]:0", "[fd6c:6f61:6d00::2]:4000"},
		{"at the loopback address", false, "[::1]:0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := process(t)
			if err := p.net.AddAddress("lo", netip.MustParsePrefix("fd6c:6f61:6d00::15/64")); err != nil {
				t.Fatal(err)
			}
			l := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0))
			ok(t, p.SetSockOpt(l, linux.IPPROTO_IPV6, linux.IPV6_V6ONLY, socket.BoolValue(c.v6Only)))
			ok(t, p.Bind(l, inet6(c.at)))
			ok(t, p.Listen(l, 5))
			name, _ := p.GetSockName(l)
			at := func(a string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(a), name.IP.Port()) }
			h := &handedOver{}
			p.Hand(h, Way{At: at("10.0.2.15"), From: netip.MustParseAddrPort("10.0.2.2:4000")},
				Way{At: at("fd6c:6f61:6d00::15"), From: netip.MustParseAddrPort("[fd6c:6f61:6d00::2]:4000")})
			_, peer, errno := p.Accept4(l, 0)
			switch {
			case c.peer == "" && (!h.closed || errno != linux.EAGAIN):
				t.Errorf("closed %v, %v", h.closed, errno)
			case c.peer != "" && (h.closed || errno != 0 || peer != inet6(c.peer)):
				t.Errorf("closed %v, from %v, %v", h.closed, peer, errno)
			}
		})
	}
}

// A process can listen on the IPv6 loopback address even if that is its first socket.
func TestListenerFor6Alone(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_STREAM, 0))
	ok(t, p.Bind(s, inet6("[::1]:0")))
	ok(t, p.Listen(s, 1))
	ok(t, p.Close(s))
}
