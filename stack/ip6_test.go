package stack_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"loam/link/pipe"
	"loam/stack"
	"loam/stack/neigh"
	"loam/wire"
)

// A TCP connection over IPv6 passes the same test suite for net.Conn as one over IPv4.
func TestTCP6ConnConformance(t *testing.T) {
	for name, p := range map[string]pipe.Config{"pipe": {}, "offloads": {Offloads: pipe.AllOffloads}} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
				pr := newPair(t, stack.Config{Shards: 2}, p)
				return join(pr.a, pr.b, "[2001:db8::2]:80")
			})
		})
	}
	t.Run("loopback", func(t *testing.T) {
		nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
			s := stack.New(stack.Config{Shards: 2})
			return join(s, s, "[::1]:80")
		})
	})
}

func TestTCP6Bulk(t *testing.T) {
	for name, p := range map[string]pipe.Config{"pipe": {}, "offloads": {Offloads: pipe.AllOffloads}, "shallow": {Depth: 4}} {
		t.Run(name, func(t *testing.T) {
			pr := newPair(t, stack.Config{Shards: 2}, p)
			if err := exchange(pr.a, pr.b, "[2001:db8::2]:80", 3_000_000); err != nil {
				t.Error(err)
			}
			local := "[" + wire.LinkLocal6(pr.b.Interfaces()[1].MAC()).String() + "%eth0]:81"
			if err := exchange(pr.a, pr.b, local, 100_000); err != nil {
				t.Errorf("between link-local addresses: %v", err)
			}
		})
	}
}

// RFC 3493 sections 3.7 and 5.3: a listener on :: also receives IPv4 unless it is
// IPv6-only; then another listener may use IPv4.
func TestDualStack(t *testing.T) {
	pr := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
	both, err := pr.b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	if got := both.Addr().String(); got != "[::]:80" {
		t.Errorf("it listens at %s", got)
	}
	if _, err := pr.b.Listen("tcp4", ":80"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("IPv4 beside both: %v", err)
	}
	for _, at := range []string{"10.0.0.2:80", "[2001:db8::2]:80", "[::ffff:10.0.0.2]:80"} {
		c, err := pr.a.Dial("tcp", at)
		if err != nil {
			t.Fatalf("dial %s: %v", at, err)
		}
		in, err := both.Accept()
		if err != nil || in.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("%s: %v, %v", at, in, err)
		}
		c.Close()
		in.Close()
	}
	both.Close()
	six, err := pr.b.Listen("tcp6", ":80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pr.a.Dial("tcp", "10.0.0.2:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("IPv4 to who listens to IPv6 only: %v", err)
	}
	four, err := pr.b.Listen("tcp4", ":80")
	if err != nil {
		t.Errorf("IPv4 beside IPv6 only: %v", err)
	} else {
		four.Close()
	}
	six.Close()
}

func TestUDP6(t *testing.T) {
	for name, p := range map[string]pipe.Config{"pipe": {}, "offloads": {Offloads: pipe.AllOffloads}} {
		t.Run(name, func(t *testing.T) {
			pr := newPair(t, stack.Config{Shards: 2}, p)
			server := mustListenPacket(t, pr.b, ":53")
			defer server.Close()
			for _, at := range []string{"[2001:db8::2]:53", "10.0.0.2:53"} {
				c, err := pr.a.Dial("udp", at)
				if err != nil {
					t.Fatal(err)
				}
				most := stack.MaxUDP6
				if at[0] != '[' {
					most = stack.MaxUDP
				}
				for _, n := range []int{0, 1, 1452, 1453, 9000, most} {
					sent, got := randomBytes(n), make([]byte, 1<<16)
					if _, err := c.Write(sent); err != nil {
						t.Fatalf("%d bytes to %s: %v", n, at, err)
					}
					m, from, err := server.ReadFrom(got)
					if err != nil || string(got[:m]) != string(sent) || from.String() != c.LocalAddr().String() {
						t.Fatalf("%d bytes to %s: %d from %v, %v", n, at, m, from, err)
					}
					if _, err := server.WriteTo(got[:m], from); err != nil {
						t.Fatal(err)
					}
					if m, err = c.Read(got); err != nil || string(got[:m]) != string(sent) {
						t.Fatalf("%d bytes back from %s: %d, %v", n, at, m, err)
					}
				}
				if _, err := c.Write(make([]byte, most+1)); !errors.Is(err, syscall.EMSGSIZE) {
					t.Errorf("a byte too many: %v", err)
				}
				c.Close()
			}
		})
	}
}

// IPv6 packets are also counted separately, and the counts survive the removal of the
// interface.
func TestCountersIPv6(t *testing.T) {
	pr := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
	server := mustListenPacket(t, pr.b, ":53")
	defer server.Close()
	const bytes = 10
	for at, times := range map[string]int{"[2001:db8::2]:53": 3, "10.0.0.2:53": 2} {
		c, err := pr.a.Dial("udp", at)
		if err != nil {
			t.Fatal(err)
		}
		for range times {
			if _, err := c.Write(make([]byte, bytes)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := server.ReadFrom(make([]byte, bytes)); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
	}
	all, six := pr.b.Counters(), pr.b.CountersIPv6()
	if all.Get(stack.UDPReceived) != 5 || six.Get(stack.UDPReceived) != 3 {
		t.Errorf("%d datagrams, %d of IPv6", all.Get(stack.UDPReceived), six.Get(stack.UDPReceived))
	}
	sent := pr.a.CountersIPv6()
	if most := sent.Get(stack.IPv6BytesSent); six.Get(stack.IPv6BytesReceived) < 3*(48+bytes) || six.Get(stack.IPv6BytesReceived) > most {
		t.Errorf("%d bytes of %d", six.Get(stack.IPv6BytesReceived), most)
	}
	ifc := pr.b.Interfaces()[1]
	one := ifc.CountersIPv6()
	if one.Get(stack.IPReceived) < 3 || one.Get(stack.UDPReceived) != 0 {
		t.Errorf("of the interface:\n%v", one.String())
	}
	if err := ifc.Detach(); err != nil {
		t.Fatal(err)
	}
	if left := pr.b.CountersIPv6(); left.Get(stack.IPReceived) < one.Get(stack.IPReceived) {
		t.Error("the counters of the interface have gone with it")
	}
}

func TestPing6(t *testing.T) {
	pr := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
	local := wire.LinkLocal6(pr.b.Interfaces()[1].MAC()).WithZone("eth0")
	for _, to := range []netip.Addr{addrB6, netip.IPv6Loopback(), local} {
		for _, size := range []int{0, 56, 20_000} {
			if r, err := pr.a.Ping(context.Background(), to, size); err != nil || r.Len != size || r.From != to {
				t.Errorf("%d bytes to %v: %+v, %v", size, to, r, err)
			}
		}
	}
	if _, err := pr.a.Ping(context.Background(), netip.MustParseAddr("ff01::1%lo"), 1); err != nil {
		t.Errorf("all nodes within an interface (RFC 4291 section 2.8): %v", err)
	}
	if _, err := pr.a.Ping(context.Background(), local.WithZone(""), 1); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a link-local address without its link: %v", err)
	}
	if _, err := pr.a.Ping(context.Background(), netip.MustParseAddr("2001:db8:1::1"), 1); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("another network: %v", err)
	}
}

// RFC 4861 section 7.2 and RFC 4862 section 5.4, observed on the wire.
func TestNeighborDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := attachPeer(t, stack.New(stack.Config{Shards: 1}), pipe.Config{}, stack.InterfaceConfig{MAC: macA})
		const us = "fe80::ff:fe00:a"
		f := w.want("an address is tried at once", "nd who-has "+us+" from :: at 00:00:00:00:00:00")
		if f.six.ip.Dst != netip.MustParseAddr("ff02::1:ff00:a") || f.eth.Dst != (wire.MAC{0x33, 0x33, 0xff, 0, 0, 0xa}) {
			t.Errorf("it is sent to %v at %v", f.six.ip.Dst, f.eth.Dst)
		}
		w.advance(2 * time.Second)
		w.wantNone("once")
		if err := w.s.AddAddress("eth0", netip.PrefixFrom(addrA6, 64)); err != nil {
			t.Fatal(err)
		}
		w.want("another", "nd who-has 2001:db8::1 from :: at 00:00:00:00:00:00")
		w.advance(time.Second)
		ask := neigh.Message{Neighbor: wire.Neighbor{Target: addrA6, LinkAddr: macB}, Src: addrB6, Dst: wire.SolicitedNode(addrA6), MAC: wire.MulticastMAC6(wire.SolicitedNode(addrA6))}
		w.sendND(ask)
		w.want("who asks is answered", "nd 2001:db8::1 is-at 02:00:00:00:00:0a to 2001:db8::2 SO")
		c, err := w.s.ListenUDP(mustAddrPort("[::]:1000"), stack.UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		mustWriteTo(t, c, "x", "[2001:db8::2]:9")
		w.want("who has asked is known", `udp 2001:db8::1:1000 > 2001:db8::2:9 "x"`)
		other := netip.MustParseAddr("2001:db8::3")
		mustWriteTo(t, c, "x", "[2001:db8::3]:9")
		f = w.want("others are asked for", "nd who-has 2001:db8::3 from 2001:db8::1 at 02:00:00:00:00:0a")
		if f.six.ip.Dst != wire.SolicitedNode(other) {
			t.Errorf("it is sent to %v", f.six.ip.Dst)
		}
		w.sendND(neigh.Message{Neighbor: wire.Neighbor{Advertisement: true, Target: other, LinkAddr: macB, Solicited: true, Override: true}, Src: other, Dst: addrA6, MAC: macA})
		w.want("and what waited is sent", `udp 2001:db8::1:1000 > 2001:db8::3:9 "x"`)
		before := w.s.Counters()
		b := make([]byte, ask.Len())
		ask.Put(b)
		wire.PutICMPv6Checksum(b, ask.Src, ask.Dst)
		whole := []byte{byte(wire.ProtoICMPv6), 0, 0, 0, 0, 0, 0, 1}
		w.send6(wire.IPv6{NextHeader: wire.ProtoIPv6Fragment, HopLimit: 255, Src: ask.Src, Dst: ask.Dst}, append(whole, b...))
		w.wantNone("what comes behind a fragment header is ignored (RFC 6980 section 5)")
		w.send6(wire.IPv6{NextHeader: wire.ProtoICMPv6, HopLimit: 254, Src: ask.Src, Dst: ask.Dst}, b)
		w.wantNone("what has passed a router is no neighbour's (section 7.1.1)")
		w.wantCount("and is counted", stack.NDMalformed, before.Get(stack.NDMalformed)+1)
		lying := ask
		lying.LinkAddr = wire.MAC{3, 0, 0, 0, 0, 0xb}
		w.sendND(lying)
		w.wantNone("nor is a group of stations, which all would hear for ever what is for one")
		w.wantCount("which is counted", stack.NDMalformed, before.Get(stack.NDMalformed)+2)
		w.advance(8 * time.Second)
		w.want("who was only heard of is asked whether it is there", "nd who-has 2001:db8::2 from 2001:db8::1 at 02:00:00:00:00:0a")
	})
}

// RFC 4429: the test checks what a program can do immediately, and what it can do after a second.
func TestOptimisticAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := attachPeer(t, stack.New(stack.Config{Shards: 1}), pipe.Config{}, stack.InterfaceConfig{MAC: macA})
		if err := w.s.AddAddress("eth0", netip.PrefixFrom(addrA6, 64)); err != nil {
			t.Fatal(err)
		}
		w.mustRoute(stack.Route{Dst: prefix("::/0"), Gateway: addrB6})
		c, err := w.s.ListenUDP(netip.AddrPortFrom(addrA6, 1000), stack.UDPOptions{})
		if err != nil {
			t.Fatal("the address is not there at once:", err)
		}
		defer c.Close()
		w.want("the address is tried at once", "nd who-has fe80::ff:fe00:a from :: at 00:00:00:00:00:00")
		w.want("the address is tried at once", "nd who-has 2001:db8::1 from :: at 00:00:00:00:00:00")
		const far, near, local = "[2001:db8:1::9]:9", "[2001:db8::3]:9", "[fe80::9%eth0]:9"
		mustWriteTo(t, c, "early", far)
		w.wantNone("a router that nobody knows is not asked for")
		ask := neigh.Message{Neighbor: wire.Neighbor{Target: addrA6, LinkAddr: macB}, Src: addrB6, Dst: wire.SolicitedNode(addrA6), MAC: wire.MulticastMAC6(wire.SolicitedNode(addrA6))}
		w.sendND(ask)
		w.want("who asks is answered without the override flag", "nd 2001:db8::1 is-at 02:00:00:00:00:0a to 2001:db8::2 S")
		w.want("what waited for it is sent", `udp 2001:db8::1:1000 > 2001:db8:1::9:9 "early"`)
		mustWriteTo(t, c, "x", "[2001:db8::2]:9")
		w.want("and it is spoken to", `udp 2001:db8::1:1000 > 2001:db8::2:9 "x"`)
		mustWriteTo(t, c, "x", near)
		if f := w.want("others are spoken to by the router", `udp 2001:db8::1:1000 > 2001:db8::3:9 "x"`); f.eth.Dst != macB {
			t.Errorf("it is sent to %v", f.eth.Dst)
		}
		mustWriteTo(t, c, "late", local)
		w.wantNone("but not those that no router speaks to")
		w.advance(time.Second)
		w.want("which are asked for when the address is ours", "nd who-has fe80::9 from fe80::ff:fe00:a at 02:00:00:00:00:0a")
		mustWriteTo(t, c, "x", near)
		w.want("as the others are", "nd who-has 2001:db8::3 from 2001:db8::1 at 02:00:00:00:00:0a")
		w.sendND(ask)
		w.want("answers override then", "nd 2001:db8::1 is-at 02:00:00:00:00:0a to 2001:db8::2 SO")
		w.forget()
	})
}

// RFC 4862 section 5.4.5: an address that another host uses is not used.
func TestDuplicateAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := attachPeer(t, stack.New(stack.Config{Shards: 1}), pipe.Config{}, stack.InterfaceConfig{MAC: macA})
		w.advance(900 * time.Millisecond) // duplicate detection takes a second
		claim := neigh.Message{
			Neighbor: wire.Neighbor{Advertisement: true, Target: wire.LinkLocal6(macA), LinkAddr: macB, Override: true},
			Src:      wire.LinkLocal6(macA), Dst: netip.IPv6LinkLocalAllNodes(), MAC: wire.MulticastMAC6(netip.IPv6LinkLocalAllNodes()),
		}
		w.sendND(claim)
		w.advance(5 * time.Second)
		w.wantCount("the conflict", stack.NDConflict, 1)
		if got := w.s.Addresses(); len(got) != 2 {
			t.Errorf("the addresses are %v", got)
		}
		w.forget()
		if err := w.s.AddAddress("eth0", netip.PrefixFrom(addrA6, 64)); err != nil {
			t.Fatal(err)
		}
		w.advance(5 * time.Second)
		claim.Target, claim.Src = addrA6, addrA6
		w.sendND(claim)
		w.wantCount("who claims one that is ours is counted", stack.NDConflict, 2)
		if got := w.s.Addresses(); len(got) != 3 {
			t.Errorf("and we stay: %v", got)
		}
		w.forget()
	})
}

func TestPacketTooBig(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		c, err := w.s.ListenUDP(mustAddrPort("[::]:1000"), stack.UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		data := strings.Repeat("x", 1452)
		mustWriteTo(t, c, data, "[2001:db8::2]:9")
		f := w.want("a full packet", fmt.Sprintf("udp 2001:db8::1:1000 > 2001:db8::2:9 %q", data))
		w.sendICMP6(wire.ICMPv6{Type: wire.ICMPv6PacketTooBig, Rest: 1300}, f.raw[:1232])
		mustWriteTo(t, c, data, "[2001:db8::2]:9")
		w.want("a router says 1300 (RFC 8201 section 4)", "ip 2001:db8::1 > 2001:db8::2 protocol 17 offset 0 length 1248")
		w.want("the rest", "ip 2001:db8::1 > 2001:db8::2 protocol 17 offset 1248 length 212")
		for _, mtu := range []uint32{0, 600, 1279} {
			w.sendICMP6(wire.ICMPv6{Type: wire.ICMPv6PacketTooBig, Rest: mtu}, f.raw[:1232])
			mustWriteTo(t, c, data, "[2001:db8::2]:9")
			w.want("less than 1280 no router may say", "ip 2001:db8::1 > 2001:db8::2 protocol 17 offset 0 length 1248")
			w.want("the rest", "ip 2001:db8::1 > 2001:db8::2 protocol 17 offset 1248 length 212")
		}
		w.forget()
		w.advance(11 * time.Minute)
		w.forget()
		w.ifc.SetNeighbour(addrB6, macB)
		mustWriteTo(t, c, data, "[2001:db8::2]:9")
		w.want("until it is forgotten", fmt.Sprintf("udp 2001:db8::1:1000 > 2001:db8::2:9 %q", data))
	})
}

// The side that connects learns the path MTU too.
func TestPacketTooBigTCP(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		d := startDial(w.s, "tcp", "[2001:db8::2]:80")
		syn := w.next()
		if syn == nil || syn.tcp == nil || syn.tcp.MSS != 1440 {
			t.Fatalf("the SYN is %v", syn)
		}
		answer := func(flags wire.TCPFlags, ack uint32, seq uint32) {
			h := wire.TCP{SrcPort: 80, DstPort: syn.tcp.SrcPort, Seq: seq, Ack: ack, Flags: flags, Window: 65535, TCPOptions: wire.TCPOptions{MSS: 1440}}
			w.send6(wire.IPv6{NextHeader: wire.ProtoTCP}, segment(h, addrB6, addrA6, ""))
		}
		answer(wire.SYN|wire.ACK, syn.tcp.Seq+1, 7)
		w.want("the handshake", fmt.Sprintf("tcp 2001:db8::1:%d > 2001:db8::2:80 A", syn.tcp.SrcPort))
		<-d.done
		mustWrite(t, d.conn, strings.Repeat("x", 1440))
		f := w.next()
		if f == nil || len(f.data) != 1440 {
			t.Fatalf("the segment is %v", f)
		}
		w.sendICMP6(wire.ICMPv6{Type: wire.ICMPv6PacketTooBig, Rest: 1280}, f.raw[:1232])
		if f = w.next(); f == nil || len(f.data) != 1220 {
			t.Fatalf("a router says 1280: the segment is %v", f)
		}
		d.conn.(*stack.TCPConn).Abort()
		w.forget()
	})
}

// RFC 8200 section 4 describes the handling of extension headers.
func TestExtensionHeaders(t *testing.T) {
	udp := datagram(netip.AddrPortFrom(addrB6, 1000), netip.AddrPortFrom(addrA6, 53), "hello")
	ext := func(next wire.Protocol, data ...byte) []byte {
		h := wire.IPv6Ext{Next: next, Data: data}
		b := make([]byte, h.Len())
		h.Put(b)
		return b
	}
	pad := []byte{1, 4, 0, 0, 0, 0}
	option := func(kind byte) []byte { return []byte{kind, 4, 0, 0, 0, 0} }
	routing := func(left byte) []byte { return []byte{0, left, 0, 0, 0, 0} }
	const problem = "icmp6 2001:db8::1 > 2001:db8::2 type 4 code "
	for _, c := range []struct {
		name    string
		first   wire.Protocol
		headers [][]byte
		want    string // "": the packet is delivered; "-": it is dropped; otherwise: the stack's reply
		pointer uint32
	}{
		{"hop-by-hop options without any", wire.ProtoHopByHop, [][]byte{ext(wire.ProtoUDP, pad...)}, "", 0},
		{"one after the other", wire.ProtoHopByHop, [][]byte{ext(wire.ProtoDestOptions, pad...), ext(wire.ProtoUDP, pad...)}, "", 0},
		{"an option to be skipped", wire.ProtoDestOptions, [][]byte{ext(wire.ProtoUDP, option(0x1e)...)}, "", 0},
		{"an option to be dropped for", wire.ProtoDestOptions, [][]byte{ext(wire.ProtoUDP, option(0x5e)...)}, "-", 0},
		{"an option to be answered for", wire.ProtoDestOptions, [][]byte{ext(wire.ProtoUDP, option(0x9e)...)}, problem + "2", 42},
		{"the same, unless sent to many", wire.ProtoDestOptions, [][]byte{ext(wire.ProtoUDP, option(0xde)...)}, problem + "2", 42},
		{"hop-by-hop options that are not first", wire.ProtoDestOptions, [][]byte{ext(wire.ProtoHopByHop, pad...), ext(wire.ProtoUDP, pad...)}, problem + "1", 40},
		{"a route that is done", wire.ProtoRouting, [][]byte{ext(wire.ProtoUDP, routing(0)...)}, "", 0},
		{"a route that is not", wire.ProtoRouting, [][]byte{ext(wire.ProtoUDP, routing(1)...)}, problem + "0", 42},
		{"nothing", wire.ProtoNoNext, nil, "-", 0},
		{"a protocol that nobody speaks", wire.ProtoDestOptions, [][]byte{ext(99, pad...)}, problem + "1", 40},
		{"ICMP of IPv4", wire.ProtoICMP, nil, problem + "1", 6},
		{"a fragment that is all", wire.ProtoIPv6Fragment, [][]byte{{17, 0, 0, 0, 0, 0, 0, 1}}, "", 0},
		{"a header that ends too soon", wire.ProtoDestOptions, [][]byte{{17, 9, 0, 0, 0, 0, 0, 0}}, "-", 0},
		{"an option that ends too late", wire.ProtoDestOptions, [][]byte{ext(wire.ProtoUDP, 0x1e, 9, 0, 0, 0, 0)}, "-", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			byHand6(t, func(t *testing.T, w *peer) {
				u, err := w.s.ListenUDP(mustAddrPort("[::]:53"), stack.UDPOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				var b []byte
				for _, h := range c.headers {
					b = append(b, h...)
				}
				w.send6(wire.IPv6{NextHeader: c.first}, append(b, udp...))
				if c.want == "" {
					wantDatagram(t, u, c.name, "hello")
				} else {
					wantNoDatagram(t, u, c.name)
				}
				if len(c.want) > 1 {
					if f := w.want(c.name, c.want); f.six.icmp.Rest != c.pointer {
						t.Errorf("the pointer is %d, want %d", f.six.icmp.Rest, c.pointer)
					}
				}
				w.wantNone(c.name)
			})
		})
	}
}

// Reassembly of IPv6 packets (RFC 8200 section 4.5).
func TestReassembly6(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		u, err := w.s.ListenUDP(mustAddrPort("[::]:53"), stack.UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		data := strings.Repeat("0123456789abcdef", 200)
		whole := datagram(netip.AddrPortFrom(addrB6, 1000), netip.AddrPortFrom(addrA6, 53), data)
		send := func(id uint32, from, to int) {
			h := wire.IPv6Fragment{Next: wire.ProtoUDP, Offset: from, More: to < len(whole), ID: id}
			b := make([]byte, wire.IPv6FragmentLen)
			h.Put(b)
			w.send6(wire.IPv6{NextHeader: wire.ProtoIPv6Fragment}, append(b, whole[from:to]...))
		}
		send(1, 2400, len(whole))
		send(1, 0, 800)
		send(1, 1600, 2400)
		send(1, 800, 1600)
		wantDatagram(t, u, "in any order", data)
		send(2, 0, 800)
		send(2, 792, 1600)
		wantNoDatagram(t, u, "fragments that overlap (RFC 5722)")
		send(3, 0, 804)
		if f := w.want("a length that is no multiple of 8", "icmp6 2001:db8::1 > 2001:db8::2 type 4 code 0"); f.six.icmp.Rest != 4 {
			t.Errorf("the pointer is %d", f.six.icmp.Rest)
		}
		send(4, 0, 800)
		w.advance(31 * time.Second)
		w.want("the rest does not come", "icmp6 2001:db8::1 > 2001:db8::2 type 3 code 1")
		w.wantNone("that is all")
	})
}

// Packets that cannot have arrived over a link are dropped.
func TestIPv6Refused(t *testing.T) {
	parse := netip.MustParseAddr
	for name, c := range map[string]struct {
		src, dst netip.Addr
		want     stack.Counter
	}{
		"another host's":               {addrB6, parse("2001:db8::77"), stack.IPNotForUs},
		"to a group of others":         {addrB6, parse("ff02::fb"), stack.IPNotMember},
		"from a group":                 {parse("ff02::1"), addrA6, stack.IPMartian},
		"from the loopback":            {parse("::1"), addrA6, stack.IPMartian},
		"to the loopback":              {addrB6, parse("::1"), stack.IPMartian},
		"from ourselves":               {addrA6, addrA6, stack.IPMartian},
		"from nobody":                  {parse("::"), addrA6, stack.IPMartian},
		"from IPv4":                    {parse("::ffff:10.0.0.2"), addrA6, stack.IPMartian},
		"to a group of this host only": {addrB6, parse("ff01::1"), stack.IPMartian},
	} {
		t.Run(name, func(t *testing.T) {
			byHand6(t, func(t *testing.T, w *peer) {
				before := w.s.Counters()
				w.send6(wire.IPv6{NextHeader: wire.ProtoUDP, Src: c.src, Dst: c.dst}, datagram(netip.AddrPortFrom(c.src, 1), netip.AddrPortFrom(c.dst, 2), "x"))
				w.wantRefused(name, before, c.want)
				w.wantNone("and not answered")
			})
		})
	}
}

// An IPv6 group is received only on the link where it was joined.
func TestMulticast6(t *testing.T) {
	pr := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
	group := netip.MustParseAddr("ff02::fb")
	u, err := pr.b.ListenUDP(mustAddrPort("[::]:5353"), stack.UDPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if err := u.JoinGroup(group, pr.b.Interfaces()[1]); err != nil {
		t.Fatal(err)
	}
	c, err := pr.a.Dial("udp", "[ff02::fb%eth0]:5353")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	n, d, err := u.ReadDatagram(b)
	if err != nil || string(b[:n]) != "hello" || d.To.Addr().WithZone("") != group || d.TTL != 1 {
		t.Errorf("%q, %+v, %v", b[:n], d, err)
	}
	if d.From.Addr().Zone() != "eth0" {
		t.Errorf("the sender is %v", d.From)
	}
	c.(*stack.UDPConn).SetOptions(func(o *stack.UDPOptions) { o.HopLimit, o.GroupHops = 9, 5 })
	c.Write([]byte("hello"))
	if _, d, err := u.ReadDatagram(b); err != nil || d.TTL != 5 {
		t.Errorf("with a hop limit for groups: %+v, %v", d, err)
	}
}

// A stack with NoIPv6 has no IPv6.
func TestNoIPv6(t *testing.T) {
	s := stack.New(stack.Config{NoIPv6: true})
	defer s.Close()
	if _, err := s.Listen("tcp", "[::1]:0"); !errors.Is(err, syscall.EAFNOSUPPORT) {
		t.Errorf("listen at ::1: %v", err)
	}
	l, err := s.Listen("tcp", ":0")
	if err != nil || l.Addr().(*net.TCPAddr).IP.To4() == nil {
		t.Errorf("listen: %v, %v", l, err)
	}
}
