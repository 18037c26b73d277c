package stack_test

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// The paths and source addresses of packets.

// station adds a second interface to a peer's stack and returns its far end.
func (w *peer) station(name, prefix string) *peer {
	w.t.Helper()
	near, far := pipe.New(pipe.Config{MACs: [2]wire.MAC{macA, macB}})
	ifc, err := w.s.Attach(near, stack.InterfaceConfig{Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.s.AddAddress(name, netip.MustParsePrefix(prefix)); err != nil {
		w.t.Fatal(err)
	}
	other := &peer{t: w.t, s: w.s, ifc: ifc, dev: far, queue: far.Queues()[0]}
	go other.read()
	return other
}

func (w *peer) mustRoute(r stack.Route) {
	w.t.Helper()
	if err := w.s.AddRoute(r); err != nil {
		w.t.Fatalf("add %+v: %v", r, err)
	}
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
func address(s string) netip.Addr  { return netip.MustParseAddr(s) }

func TestLongestPrefix(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		other := w.station("eth1", "192.168.7.1/24")
		gateway1, gateway2 := wire.MAC{2, 0, 0, 0, 1, 1}, wire.MAC{2, 0, 0, 0, 1, 2}
		w.ifc.SetNeighbour(address("10.0.0.254"), gateway1)
		other.ifc.SetNeighbour(address("192.168.7.254"), gateway2)
		other.ifc.SetNeighbour(address("192.168.7.9"), macB)
		w.mustRoute(stack.Route{Dst: prefix("0.0.0.0/0"), Gateway: address("10.0.0.254")})
		w.mustRoute(stack.Route{Dst: prefix("172.16.0.0/12"), Gateway: address("192.168.7.254")})
		w.mustRoute(stack.Route{Dst: prefix("172.16.5.0/24"), Gateway: address("10.0.0.254"), Metric: 5})
		w.mustRoute(stack.Route{Dst: prefix("172.16.5.0/24"), Gateway: address("192.168.7.254"), Metric: 9})
		w.mustRoute(stack.Route{Dst: prefix("172.16.6.0/24"), Gateway: address("192.168.7.254"), Source: addrA})
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		w.forget()
		other.forget()
		for _, test := range []struct {
			sentence, to, source string
			on                   *peer
			mac                  wire.MAC
		}{
			{"on the link of the first interface", "10.0.0.2:9", "10.0.0.1", w, macB},
			{"on the link of the second", "192.168.7.9:9", "192.168.7.1", other, macB},
			{"elsewhere, by the default route", "8.8.8.8:9", "10.0.0.1", w, gateway1},
			{"by a route to a gateway on the second interface", "172.20.1.1:9", "192.168.7.1", other, gateway2},
			{"by the longer prefix, and there by the lower metric", "172.16.5.5:9", "10.0.0.1", w, gateway1},
			{"with the source that the route prefers", "172.16.6.6:9", "10.0.0.1", other, gateway2},
		} {
			mustWriteTo(t, c, "x", test.to)
			to := mustAddrPort(test.to)
			f := test.on.want(test.sentence, "udp "+test.source+":1000 > "+to.String()+` "x"`)
			if f.eth.Dst != test.mac {
				t.Errorf("%s: sent to %v, want %v", test.sentence, f.eth.Dst, test.mac)
			}
		}
		w.wantNone("that is all")
		other.wantNone("that is all")
	})
}

func TestSourceSelection(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		for _, p := range []string{"10.0.0.5/24", "10.8.0.1/16", "10.8.1.1/24"} {
			if err := w.s.AddAddress("eth0", prefix(p)); err != nil {
				t.Fatal(err)
			}
		}
		w.ifc.SetNeighbour(address("10.8.0.9"), macB)
		w.ifc.SetNeighbour(address("10.8.1.9"), macB)
		w.forget()
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustWriteTo(t, c, "x", "10.0.0.2:9")
		w.want("the first address of the subnet", `udp 10.0.0.1:1000 > 10.0.0.2:9 "x"`)
		mustWriteTo(t, c, "x", "10.8.0.9:9")
		w.want("the address of that subnet", `udp 10.8.0.1:1000 > 10.8.0.9:9 "x"`)
		mustWriteTo(t, c, "x", "10.8.1.9:9")
		w.want("of nested subnets, the inner one's", `udp 10.8.1.1:1000 > 10.8.1.9:9 "x"`)
		bound, err := w.s.ListenUDP(mustAddrPort("10.0.0.5:1001"), stack.UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer bound.Close()
		mustWriteTo(t, bound, "x", "10.8.1.9:9")
		w.want("a socket's own address goes before all", `udp 10.0.0.5:1001 > 10.8.1.9:9 "x"`)
		// Replies come from the address to which the request was sent.
		for _, us := range []string{"10.0.0.1", "10.0.0.5", "10.8.0.1"} {
			w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Dst: address(us)}, message(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil))
			w.want("each address answers for itself", "icmp "+us+" > 10.0.0.2 type 0 code 0")
		}
		if err := w.s.RemoveAddress("eth0", prefix("10.0.0.5/24")); err != nil {
			t.Fatal(err)
		}
		w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Dst: address("10.0.0.5")}, message(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil))
		w.wantNone("an address that was removed does not")
	})
}

func TestNoRoute(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		if _, err := c.TryWriteTo([]byte("x"), mustAddrPort("8.8.8.8:9")); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("write: %v, want ENETUNREACH", err)
		}
		if _, err := w.s.Dial("tcp", "8.8.8.8:9"); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("dial: %v, want ENETUNREACH", err)
		}
		if _, err := w.s.Dial("udp", "8.8.8.8:9"); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("dial UDP: %v, want ENETUNREACH", err)
		}
		if _, err := w.s.Ping(t.Context(), address("8.8.8.8"), 8); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("ping: %v, want ENETUNREACH", err)
		}
		before := w.s.Counters()
		w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Src: address("8.8.8.8")}, message(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil))
		w.wantRefused("an answer without a route", before, stack.IPNoRoute)
		w.wantNone("cannot be sent")
	})
}

// Which changes of addresses and routes are rejected, and which addresses and routes are listed afterwards.
func TestTables(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		route := stack.Route{Dst: prefix("0.0.0.0/0"), Gateway: addrB, Interface: "eth0"}
		w.mustRoute(route)
		for _, test := range []struct {
			name string
			err  error
			want error
		}{
			{"a route twice", w.s.AddRoute(route), stack.ErrExists},
			{"a route that is not there", w.s.RemoveRoute(stack.Route{Dst: prefix("1.0.0.0/8"), Interface: "eth0"}), stack.ErrNotFound},
			{"a route to an interface that is not there", w.s.AddRoute(stack.Route{Dst: prefix("1.0.0.0/8"), Interface: "eth9"}), stack.ErrNoInterface},
			{"a gateway on no interface", w.s.AddRoute(stack.Route{Dst: prefix("1.0.0.0/8"), Gateway: address("9.9.9.9")}), stack.ErrNoInterface},
			{"a route without destination", w.s.AddRoute(stack.Route{}), stack.ErrInvalid},
			{"a route of IPv6 on an interface without", w.s.AddRoute(stack.Route{Dst: prefix("2001:db8::/32"), Interface: "eth0"}), stack.ErrFamily},
			{"a gateway of another family", w.s.AddRoute(stack.Route{Dst: prefix("1.0.0.0/8"), Gateway: address("fe80::1"), Interface: "eth0"}), stack.ErrInvalid},
			{"an address twice", w.s.AddAddress("eth0", netip.PrefixFrom(addrA, 16)), stack.ErrExists},
			{"an address on an interface that is not there", w.s.AddAddress("eth9", prefix("10.9.0.1/24")), stack.ErrNoInterface},
			{"an address of IPv6 on an interface without", w.s.AddAddress("eth0", prefix("2001:db8::1/64")), stack.ErrFamily},
			{"a multicast address", w.s.AddAddress("eth0", prefix("224.0.0.1/24")), stack.ErrInvalid},
			{"no address", w.s.AddAddress("eth0", prefix("0.0.0.0/0")), stack.ErrInvalid},
			{"to remove an address that is not there", w.s.RemoveAddress("eth0", prefix("10.9.0.1/24")), stack.ErrNotFound},
			{"to remove one from an interface that is not there", w.s.RemoveAddress("eth9", prefix("10.0.0.1/24")), stack.ErrNotFound},
			{"to detach the loopback", w.s.Interfaces()[0].Detach(), stack.ErrInvalid},
		} {
			if !errors.Is(test.err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, test.err, test.want)
			}
		}
		if got := w.s.Routes(); !slices.Equal(got, []stack.Route{route}) {
			t.Errorf("the routes are %v", got)
		}
		if err := w.s.RemoveRoute(route); err != nil || len(w.s.Routes()) != 0 {
			t.Errorf("after removing the route: %v, %v", err, w.s.Routes())
		}
		want := []stack.Address{{Interface: "lo", Prefix: prefix("127.0.0.1/8")}, {Interface: "lo", Prefix: prefix("::1/128")}, {Interface: "eth0", Prefix: prefix("10.0.0.1/24")}}
		if got := w.s.Addresses(); !slices.Equal(got, want) {
			t.Errorf("the addresses are %v", got)
		}
	})
}

func TestAttachRefuses(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		near, far := pipe.New(pipe.Config{MTU: 500})
		defer near.Close()
		defer far.Close()
		if _, err := w.s.Attach(near, stack.InterfaceConfig{}); !errors.Is(err, stack.ErrInvalid) {
			t.Errorf("an MTU of 500: %v, want %v", err, stack.ErrInvalid)
		}
		other, far2 := pipe.New(pipe.Config{})
		defer other.Close()
		defer far2.Close()
		if _, err := w.s.Attach(other, stack.InterfaceConfig{Name: "eth0"}); !errors.Is(err, stack.ErrExists) {
			t.Errorf("a name twice: %v, want %v", err, stack.ErrExists)
		}
	})
}

// RFC 3021: a prefix of 31 bits has two hosts and no broadcast address; a prefix of 32
// bits is a single host.
func TestPointToPointPrefix(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		if err := w.s.AddAddress("eth0", prefix("10.7.0.0/31")); err != nil {
			t.Fatal(err)
		}
		w.ifc.SetNeighbour(address("10.7.0.1"), macB)
		w.forget()
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustWriteTo(t, c, "x", "10.7.0.1:9")
		if f := w.want("the other host is a host", `udp 10.7.0.0:1000 > 10.7.0.1:9 "x"`); f.eth.Dst != macB {
			t.Errorf("sent to %v, want %v", f.eth.Dst, macB)
		}
		if err := w.s.AddAddress("eth0", prefix("10.7.1.1/32")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.TryWriteTo([]byte("x"), mustAddrPort("10.7.1.2:9")); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("beside a host alone: %v, want ENETUNREACH", err)
		}
	})
}
