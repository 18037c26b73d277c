package stack_test

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Packets that the link and IP layers accept and reject. Each rejected packet is counted
// once, by its reason, and not answered.

// refusals are the counters of dropped packets.
var refusals = []stack.Counter{
	stack.EthMalformed, stack.EthNotForUs, stack.EthUnknownType, stack.EthTagged, stack.EthNoRoom,
	stack.ARPMalformed, stack.ARPOverflow, stack.NDMalformed,
	stack.RedirectIgnored, stack.RedirectUnsent, stack.RedirectStranger, stack.RedirectOffLink, stack.RedirectOverflow,
	stack.GroupMalformed, stack.GroupIgnored, stack.GroupOverflow,
	stack.NeighFailed, stack.NeighOverflow,
	stack.IPMalformed, stack.IPChecksum, stack.IPNotForUs, stack.IPNotMember, stack.IPMartian, stack.IPSourceRoute,
	stack.IPNoProtocol, stack.IPNoRoute, stack.IPReassembly, stack.IPOverflow,
	stack.ICMPMalformed, stack.ICMPChecksum, stack.ICMPIgnored, stack.ICMPNoRoom,
	stack.UDPMalformed, stack.UDPChecksum, stack.UDPNoPort, stack.UDPOverflow,
	stack.TCPMalformed, stack.TCPChecksum, stack.TCPNoPort, stack.TCPBacklogFull, stack.TCPNoRoom,
	stack.ForwardOverflow,
}

// wantRefused checks that exactly one packet was dropped, for the given reason, since the
// counters in before were read.
func (w *peer) wantRefused(sentence string, before stack.Counters, reason stack.Counter) {
	w.t.Helper()
	synctest.Wait()
	after := w.s.Counters()
	for _, r := range refusals {
		want := before.Get(r)
		if r == reason {
			want++
		}
		if got := after.Get(r); got != want {
			w.t.Errorf("%s: %v went from %d to %d, want %d", sentence, r, before.Get(r), got, want)
		}
	}
}

func TestIPRefused(t *testing.T) {
	addr := netip.MustParseAddr
	ip := func(change func(*wire.IPv4)) []byte {
		h := wire.IPv4{Protocol: wire.ProtoUDP, Src: addrB, Dst: addrA}
		change(&h)
		udp := datagram(netip.AddrPortFrom(h.Src, 1000), netip.AddrPortFrom(h.Dst, 53), "hello")
		return ethernet(macA, wire.TypeIPv4, packet(h, udp))
	}
	good := func() []byte { return ip(func(*wire.IPv4) {}) }
	damage := func(at int) []byte { b := good(); b[at] ^= 0x40; return b }
	to := func(dst wire.MAC) []byte { b := good(); copy(b, dst[:]); return b }
	by := func(src wire.MAC) []byte { b := good(); copy(b[len(src):], src[:]); return b }
	tagged := wire.Ethernet{Dst: macA, Src: macB, Tags: [2]wire.VLAN{{TPID: wire.TypeVLAN, TCI: 7}}, Type: wire.TypeIPv4}
	tag := make([]byte, tagged.Len())
	tagged.Put(tag)
	for _, c := range []struct {
		name  string
		frame []byte
		want  stack.Counter
	}{
		{"half a VLAN tag", ethernet(macA, wire.TypeVLAN, []byte{0, 1}), stack.EthMalformed},
		{"a group of stations as sender", by(wire.MAC{3, 0, 0, 0, 0, 0xb}), stack.EthMalformed},
		{"802.3 length framing", ethernet(macA, 46, make([]byte, 46)), stack.EthMalformed},
		{"a frame to another station", to(wire.MAC{2, 0, 0, 0, 0, 0xee}), stack.EthNotForUs},
		{"an EtherType that we do not speak", ethernet(macA, wire.TypeIPv6, make([]byte, 40)), stack.EthUnknownType},
		{"a frame of a VLAN", append(tag, good()[wire.EthernetLen:]...), stack.EthTagged},
		{"half an IP header", good()[:wire.EthernetLen+10], stack.IPMalformed},
		{"IP version 6 in an IPv4 frame", damage(wire.EthernetLen), stack.IPMalformed},
		{"a damaged IP header", damage(wire.EthernetLen + 8), stack.IPChecksum},
		{"a packet to another host", ip(func(h *wire.IPv4) { h.Dst = addr("10.0.0.77") }), stack.IPNotForUs},
		{"a packet to another network's broadcast", ip(func(h *wire.IPv4) { h.Dst = addr("10.0.1.255") }), stack.IPNotForUs},
		{"a multicast source", ip(func(h *wire.IPv4) { h.Src = addr("224.0.0.5") }), stack.IPMartian},
		{"the broadcast address as source", ip(func(h *wire.IPv4) { h.Src = addr("255.255.255.255") }), stack.IPMartian},
		{"our subnet's broadcast address as source", ip(func(h *wire.IPv4) { h.Src = addr("10.0.0.255") }), stack.IPMartian},
		{"a loopback source", ip(func(h *wire.IPv4) { h.Src = addr("127.0.0.1") }), stack.IPMartian},
		{"a loopback destination", ip(func(h *wire.IPv4) { h.Dst = addr("127.0.0.1") }), stack.IPMartian},
		{"no source", ip(func(h *wire.IPv4) { h.Src = addr("0.0.0.0") }), stack.IPMartian},
		{"a source on \"this network\" (RFC 1122 section 3.2.1.3 (b))", ip(func(h *wire.IPv4) { h.Src = addr("0.0.0.9") }), stack.IPMartian},
		{"our own address as source", ip(func(h *wire.IPv4) { h.Src = addrA }), stack.IPMartian},
		{"a packet for us in a broadcast frame (RFC 1122 section 3.3.6)", to(wire.Broadcast), stack.IPMartian},
		{"a packet for us in a multicast frame", to(wire.MAC{1, 0, 0x5e, 0, 0, 1}), stack.IPMartian},
		{"a packet for another host in a broadcast frame", func() []byte {
			b := ip(func(h *wire.IPv4) { h.Dst = addr("10.0.0.77") })
			copy(b, wire.Broadcast[:])
			return b
		}(), stack.IPNotForUs},
		{"a packet to a group that we are not in", func() []byte {
			b := ip(func(h *wire.IPv4) { h.Dst = group1 })
			mac := wire.MulticastMAC4(group1)
			copy(b, mac[:])
			return b
		}(), stack.IPNotMember},
		{"a loose source route (RFC 7126 section 4.3)", ip(func(h *wire.IPv4) { h.Options = []byte{131, 7, 4, 10, 0, 0, 9, 0} }), stack.IPSourceRoute},
		{"a strict source route", ip(func(h *wire.IPv4) { h.Options = []byte{137, 7, 4, 10, 0, 0, 9, 0} }), stack.IPSourceRoute},
	} {
		t.Run(c.name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				// A socket bound to all addresses must not receive the packet either.
				s := mustUDP(t, w.s, 53)
				defer s.Close()
				before := w.s.Counters()
				w.send(c.frame)
				w.wantRefused(c.name, before, c.want)
				w.wantNone("what is refused is not answered")
				if n, _ := s.Waiting(); n != 0 {
					t.Error("and does not reach a socket")
				}
			})
		})
	}
}

func TestIPAccepted(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		s := mustUDP(t, w.s, 53)
		defer s.Close()
		want := func(sentence string) {
			t.Helper()
			var b [100]byte
			n, _, err := s.TryReadFrom(b[:])
			if err != nil || string(b[:n]) != "hello" {
				t.Errorf("%s: received %q, %v", sentence, b[:n], err)
			}
		}
		src, dst := netip.AddrPortFrom(addrB, 1000), netip.AddrPortFrom(addrA, 53)
		udp := datagram(src, dst, "hello")
		w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP, Options: []byte{148, 4, 0, 0}}, udp)
		want("other options are skipped (RFC 1122 section 3.2.1.8)")
		w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP, TTL: 1}, udp)
		want("a host does not look at the time to live")
		w.send(append(ethernet(macA, wire.TypeIPv4, packet(wire.IPv4{Protocol: wire.ProtoUDP}, udp)), make([]byte, 13)...))
		want("padding of the link is cut off")
		priority := wire.Ethernet{Dst: macA, Src: macB, Tags: [2]wire.VLAN{{TPID: wire.TypeVLAN, TCI: 5 << 13}}, Type: wire.TypeIPv4}
		b := make([]byte, priority.Len())
		priority.Put(b)
		w.send(append(b, packet(wire.IPv4{Protocol: wire.ProtoUDP}, udp)...))
		want("a tag with priority only is no VLAN (IEEE 802.1Q)")
		udp[6], udp[7] = 0, 0
		w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP}, udp)
		want("a datagram without checksum is taken (RFC 1122 section 4.1.3.4)")
	})
}

// The address of the second interface is also this host: the weak host model of RFC 1122
// section 3.3.4.2, as on Linux.
func TestIPWeakHost(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		other, far := pipe.New(pipe.Config{})
		defer far.Close()
		if _, err := w.s.Attach(other, stack.InterfaceConfig{Name: "eth1"}); err != nil {
			t.Fatal(err)
		}
		if err := w.s.AddAddress("eth1", netip.MustParsePrefix("192.168.7.1/24")); err != nil {
			t.Fatal(err)
		}
		inner := netip.MustParseAddr("192.168.7.1")
		w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Dst: inner}, message(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil))
		w.want("it answers on any interface", "icmp 192.168.7.1 > 10.0.0.2 type 0 code 0")
	})
}

// A valid packet of an unsupported protocol is answered.
func TestIPNoProtocol(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		before := w.s.Counters()
		w.sendIP(wire.IPv4{Protocol: 132}, make([]byte, 12))
		f := w.want("protocol unreachable (RFC 1122 section 3.2.2.1)", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 2")
		if len(f.data) != 20+12 || f.data[9] != 132 {
			t.Errorf("it quotes %x, want the packet", f.data)
		}
		w.wantRefused("it is counted", before, stack.IPNoProtocol)
	})
}
