package stack_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Fragments: RFC 791 section 3.2, RFC 1122 section 3.3.2, RFC 5722, RFC 6864.

// fragment returns bytes from:to of a datagram's IP payload as a packet.
func fragment(h wire.IPv4, payload []byte, from, to int) []byte {
	h.FragOffset, h.MoreFragment = from, to < len(payload)
	return packet(h, payload[from:to])
}

// sendFragments sends payload[from:to] in fragments of 1000 bytes.
func (w *peer) sendFragments(h wire.IPv4, payload []byte, from, to int) {
	w.t.Helper()
	for ; from < to; from += 1000 {
		w.sendPacket(fragment(h, payload, from, min(from+1000, to)))
	}
}

// sendPacket sends an IP packet to the stack.
func (w *peer) sendPacket(b []byte) {
	w.t.Helper()
	w.send(ethernet(macA, wire.TypeIPv4, b))
}

// bigDatagram returns a UDP datagram to port 53 with an IP payload of 3000 bytes.
func bigDatagram(dst netip.Addr) (payload []byte, data string) {
	data = strings.Repeat("loam", 3000/4-2)
	return datagram(netip.AddrPortFrom(addrB, 1000), netip.AddrPortFrom(dst, 53), data), data
}

func wantDatagram(t *testing.T, c *stack.UDPConn, sentence, want string) {
	t.Helper()
	synctest.Wait()
	b := make([]byte, 70000)
	n, _, err := c.TryReadFrom(b)
	if err != nil || string(b[:n]) != want {
		t.Errorf("%s: received %d bytes, %v; want %d", sentence, n, err, len(want))
	}
}

func wantNoDatagram(t *testing.T, c *stack.UDPConn, sentence string) {
	t.Helper()
	synctest.Wait()
	if n, _ := c.Waiting(); n != 0 {
		t.Errorf("%s: there is a datagram", sentence)
	}
}

func TestReassembly(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 53)
		defer c.Close()
		payload, data := bigDatagram(addrA)
		h := wire.IPv4{Protocol: wire.ProtoUDP, ID: 1}
		w.sendPacket(fragment(h, payload, 0, 1000))
		w.sendPacket(fragment(h, payload, 1000, 2000))
		wantNoDatagram(t, c, "a part is not delivered")
		w.sendPacket(fragment(h, payload, 2000, 3000))
		wantDatagram(t, c, "fragments in order", data)
		h.ID++
		for _, at := range []int{2, 0, 1} {
			w.sendPacket(fragment(h, payload, at*1000, at*1000+1000))
		}
		wantDatagram(t, c, "fragments in any order", data)
		h.ID++
		w.sendPacket(fragment(h, payload, 0, 1000))
		w.sendPacket(fragment(h, payload, 0, 1000))
		w.sendFragments(h, payload, 1000, 3000)
		wantDatagram(t, c, "a fragment twice", data)
		h.ID++
		other := h
		other.Src = netip.MustParseAddr("10.0.0.3")
		w.sendPacket(fragment(h, payload, 0, 1000))
		w.sendFragments(other, payload, 1000, 3000)
		wantNoDatagram(t, c, "fragments of different hosts do not mix")
		w.sendFragments(h, payload, 1000, 3000)
		wantDatagram(t, c, "fragments of one host", data)
		w.wantCount("datagrams put together", stack.IPReassembled, 4)
		w.wantCount("fragments", stack.IPFragments, 3+3+4+5)
	})
}

// RFC 5722: if any fragments overlap, the whole datagram is dropped, including fragments
// that arrive later.
func TestOverlapsRefused(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 53)
		defer c.Close()
		payload, _ := bigDatagram(addrA)
		h := wire.IPv4{Protocol: wire.ProtoUDP, ID: 1}
		w.sendPacket(fragment(h, payload, 0, 1000))
		w.sendPacket(fragment(h, payload, 992, 2000))
		w.sendPacket(fragment(h, payload, 1000, 2000))
		w.sendPacket(fragment(h, payload, 2000, 3000))
		wantNoDatagram(t, c, "overlapping fragments")
		changed := bytes.Clone(payload)
		changed[500]++
		h.ID++
		w.sendPacket(fragment(h, payload, 0, 1000))
		w.sendPacket(fragment(h, changed, 0, 1000))
		w.sendFragments(h, payload, 1000, 3000)
		wantNoDatagram(t, c, "the same place with other bytes")
		w.advance(time.Minute)
		w.wantNone("about what was refused no error is sent")
		w.wantCount("datagrams put together", stack.IPReassembled, 0)
	})
}

// A fragment that ends beyond 65535 bytes, the maximum length of a datagram ("ping of death"), is dropped.
func TestOversizeRefused(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		before := w.s.Counters()
		h := wire.IPv4{Protocol: wire.ProtoICMP, FragOffset: 65512}
		w.sendPacket(packet(h, make([]byte, 64)))
		w.wantRefused("a fragment that ends beyond 65535", before, stack.IPMalformed)
	})
}

func TestReassemblyTimeout(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		payload, _ := bigDatagram(addrA)
		h := wire.IPv4{Protocol: wire.ProtoUDP, ID: 1}
		before := w.s.Counters()
		w.sendPacket(fragment(h, payload, 0, 1000))
		w.advance(29 * time.Second)
		w.wantNone("the rest may still come")
		w.advance(time.Second)
		f := w.want("time exceeded in reassembly (RFC 792)", "icmp 10.0.0.1 > 10.0.0.2 type 11 code 1")
		if q, _, err := wire.ParseIPv4(append(f.data[:len(f.data):len(f.data)], make([]byte, 3000)...)); err != nil || q.ID != 1 {
			t.Errorf("it quotes %+v, %v; want the first fragment", q, err)
		}
		w.wantRefused("it is counted", before, stack.IPReassembly)
		h.ID++
		w.sendPacket(fragment(h, payload, 1000, 2000))
		w.advance(time.Minute)
		w.wantNone("without the first fragment nothing is said (RFC 1122 section 3.3.2)")
	})
}

// A broadcast datagram whose reassembly times out is not answered.
func TestReassemblyTimeoutOfBroadcast(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		all := netip.MustParseAddr("10.0.0.255")
		payload, _ := bigDatagram(all)
		h := wire.IPv4{Protocol: wire.ProtoUDP, Dst: all, ID: 1}
		w.send(ethernet(wire.Broadcast, wire.TypeIPv4, fragment(h, payload, 0, 1000)))
		w.advance(time.Minute)
		w.wantNone("no error about a broadcast (RFC 1122 section 3.2.2)")
	})
}

// The memory that remote hosts can fill with fragments is bounded, and other hosts'
// datagrams are still reassembled.
func TestReassemblyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		w := newPeer(t, stack.Config{Shards: 1, MaxReassembly: limit}, pipe.Config{})
		c := mustUDP(t, w.s, 53)
		defer c.Close()
		payload, data := bigDatagram(addrA)
		link := w.heldFrames()
		for i := range 5000 {
			h := wire.IPv4{Protocol: wire.ProtoUDP, ID: uint16(i), Src: netip.AddrFrom4([4]byte{10, 0, 0, byte(3 + i%200)})}
			w.sendPacket(fragment(h, payload, 0, 1400))
		}
		if n := w.heldFrames() - link; n*2048 > limit {
			t.Errorf("%d frames are held for incomplete datagrams: more than %d bytes", n, limit)
		}
		h := wire.IPv4{Protocol: wire.ProtoUDP, ID: 1}
		w.sendPacket(fragment(h, payload, 0, 1000))
		w.sendFragments(h, payload, 1000, 3000)
		wantDatagram(t, c, "an honest datagram in between", data)
		w.advance(time.Minute)
		w.forget()
		if n := w.heldFrames() - link; n != 0 {
			t.Errorf("a minute later %d frames are still held", n)
		}
	})
}

// A datagram reassembled in the shard of its addresses may belong to a flow of another
// shard.
func TestReassemblyOverShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeer(t, stack.Config{Shards: 4}, pipe.Config{})
		c := mustUDP(t, w.s, 53)
		defer c.Close()
		for port := range uint16(20) {
			data := strings.Repeat("loam", 500)
			payload := datagram(netip.AddrPortFrom(addrB, 1000+port), netip.AddrPortFrom(addrA, 53), data)
			h := wire.IPv4{Protocol: wire.ProtoUDP, ID: port}
			w.sendPacket(fragment(h, payload, 0, 1000))
			w.sendFragments(h, payload, 1000, len(payload))
			wantDatagram(t, c, "a datagram", data)
		}
	})
}

func TestFragmentsSent(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		data := strings.Repeat("loam", 750)
		mustWriteTo(t, c, data, "10.0.0.2:53")
		var whole []byte
		var first *seen
		for _, text := range []string{
			"ip 10.0.0.1 > 10.0.0.2 protocol 17 offset 0 length 1480",
			"ip 10.0.0.1 > 10.0.0.2 protocol 17 offset 1480 length 1480",
			"ip 10.0.0.1 > 10.0.0.2 protocol 17 offset 2960 length 48",
		} {
			f := w.want("a datagram above the MTU is cut up", text)
			if first == nil {
				first = f
			}
			if f.ip.ID != first.ip.ID || f.ip.MoreFragment == (f.ip.FragOffset == 2960) {
				t.Errorf("fragment at %d: ID %d, more fragments %v", f.ip.FragOffset, f.ip.ID, f.ip.MoreFragment)
			}
			whole = append(whole, f.data...)
		}
		if !wire.UDPChecksumOK(whole, addrA, addrB) || string(whole[8:]) != data {
			t.Error("put together, the fragments are not the datagram")
		}
		mustWriteTo(t, c, data, "10.0.0.2:53")
		if f := w.want("the next one", "ip 10.0.0.1 > 10.0.0.2 protocol 17 offset 0 length 1480"); f.ip.ID == first.ip.ID {
			t.Error("has the same identification (RFC 6864)")
		}
		w.forget()
		w.wantCount("datagrams cut up", stack.IPFragmented, 2)
		w.wantCount("fragments", stack.IPFragsSent, 6)
		w.wantCount("packets", stack.IPSent, 2)
	})
}
