package ip

import (
	"net/netip"
	"testing"

	"loam/wire"
)

// chainOf returns an IPv6 packet with the given headers and payload.
func chainOf(first wire.Protocol, dst string, parts ...[]byte) (wire.IPv6, []byte) {
	var payload []byte
	for _, p := range parts {
		payload = append(payload, p...)
	}
	h := wire.IPv6{NextHeader: first, HopLimit: 64, Src: netip.MustParseAddr("2001:db8::2"), Dst: netip.MustParseAddr(dst), PayloadLen: len(payload)}
	b := append(make([]byte, wire.IPv6Len), payload...)
	h.Put(b)
	return h, b
}

func ext(next wire.Protocol, data ...byte) []byte {
	h := wire.IPv6Ext{Next: next, Data: data}
	b := make([]byte, h.Len())
	h.Put(b)
	return b
}

func fragmentHeader(offset int, more bool) []byte { return fragmentOf(wire.ProtoUDP, offset, more) }

func fragmentOf(next wire.Protocol, offset int, more bool) []byte {
	h := wire.IPv6Fragment{Next: next, Offset: offset, More: more, ID: 7}
	b := make([]byte, wire.IPv6FragmentLen)
	h.Put(b)
	return b
}

// RFC 8200 section 4, RFC 5095, RFC 6946, RFC 7112.
func TestChain(t *testing.T) {
	const us, many = "2001:db8::1", "ff02::1"
	udp, short := make([]byte, 16), make([]byte, 4)
	for sentence, c := range map[string]struct {
		first wire.Protocol
		dst   string
		parts [][]byte
		want  Chain
	}{
		"no extension header": {wire.ProtoUDP, us, [][]byte{udp},
			Chain{Protocol: wire.ProtoUDP, Offset: 40, NextAt: 6}},
		"the field that names the protocol is told": {wire.ProtoHopByHop, us, [][]byte{ext(wire.ProtoUDP, 5, 2, 0, 0, 1, 0), udp},
			Chain{Protocol: wire.ProtoUDP, Offset: 48, NextAt: 40}},
		"an option to be reported even if sent to many": {wire.ProtoDestOptions, many, [][]byte{ext(wire.ProtoUDP, 0, 0, 0x80, 0, 0, 0), udp},
			Chain{Action: Report, Protocol: wire.ProtoDestOptions, Offset: 40, NextAt: 6, Code: CodeOption, Pointer: 44, Always: true}},
		"an option to be reported unless sent to many": {wire.ProtoDestOptions, many, [][]byte{ext(wire.ProtoUDP, 0xc0, 4, 0, 0, 0, 0), udp},
			Chain{Action: Discard, Protocol: wire.ProtoDestOptions, Offset: 40, NextAt: 6}},
		"a fragment": {wire.ProtoIPv6Fragment, us, [][]byte{fragmentHeader(0, true), udp},
			Chain{Action: Reassemble, Protocol: wire.ProtoIPv6Fragment, Offset: 48, NextAt: 6, Fragment: wire.IPv6Fragment{Next: wire.ProtoUDP, More: true, ID: 7}}},
		"a fragment beyond the end of any packet": {wire.ProtoIPv6Fragment, us, [][]byte{fragmentHeader(65528, false), udp},
			Chain{Action: Report, Protocol: wire.ProtoIPv6Fragment, Offset: 40, NextAt: 6, Code: CodeHeaderField, Pointer: 42}},
		"a first fragment without the transport's header": {wire.ProtoIPv6Fragment, us, [][]byte{fragmentHeader(0, true), short, short[:0], short},
			Chain{Action: Reassemble, Protocol: wire.ProtoIPv6Fragment, Offset: 48, NextAt: 6, Fragment: wire.IPv6Fragment{Next: wire.ProtoUDP, More: true, ID: 7}}},
		"hop-by-hop options behind a fragment header": {wire.ProtoIPv6Fragment, us, [][]byte{fragmentOf(wire.ProtoHopByHop, 0, true), ext(wire.ProtoUDP, 5, 2, 0, 0, 1, 0), udp},
			Chain{Action: Report, Protocol: wire.ProtoIPv6Fragment, Offset: 40, NextAt: 6, Code: CodeNextHeader, Pointer: 40}},
		"a first fragment with nothing": {wire.ProtoIPv6Fragment, us, [][]byte{fragmentHeader(0, true)},
			Chain{Action: Report, Protocol: wire.ProtoIPv6Fragment, Offset: 40, NextAt: 6, Code: CodeFirstFragment}},
		"a first fragment without the header of ICMPv6": {wire.ProtoIPv6Fragment, us, [][]byte{fragmentOf(wire.ProtoICMPv6, 0, true)},
			Chain{Action: Report, Protocol: wire.ProtoIPv6Fragment, Offset: 40, NextAt: 6, Code: CodeFirstFragment}},
	} {
		h, b := chainOf(c.first, c.dst, c.parts...)
		if got := ParseChain(&h, b); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", sentence, got, c.want)
		}
	}
}

// The offset of a chain lies within the packet.
func FuzzChain(f *testing.F) {
	h, b := chainOf(wire.ProtoHopByHop, "ff02::1", ext(wire.ProtoDestOptions, 5, 2, 0, 0, 1, 0), ext(wire.ProtoRouting, 1, 4, 0, 0, 0, 0), ext(wire.ProtoIPv6Fragment, 0, 0, 0, 0, 0, 0), fragmentHeader(8, true), make([]byte, 16))
	f.Add(uint8(h.NextHeader), b[wire.IPv6Len:])
	f.Fuzz(func(t *testing.T, first uint8, payload []byte) {
		if len(payload) > wire.MaxIPv6Payload {
			return
		}
		h, b := chainOf(wire.Protocol(first), "2001:db8::1", payload)
		c := ParseChain(&h, b)
		if c.Offset > len(b) || c.NextAt >= len(b) || c.Pointer > len(b) {
			t.Fatalf("%+v of a packet of %d bytes", c, len(b))
		}
	})
}

// RFC 8200 section 4.5: all fragments but the last are multiples of eight bytes, fit into the MTU, and
// together make up the packet.
func TestFragment6(t *testing.T) {
	payload := make([]byte, 5000)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	h := wire.IPv6{NextHeader: wire.ProtoUDP, HopLimit: 9, TrafficClass: 3, FlowLabel: 5}
	for _, mtu := range []int{1280, 1283, 1500, 4999} {
		f, err := Fragment6(&h, payload, mtu, 77)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for h, frag, part, ok := f.Next(); ok; h, frag, part, ok = f.Next() {
			last := at+len(part) == len(payload)
			if frag.Offset != at || frag.More == last || frag.ID != 77 || frag.Next != wire.ProtoUDP || h.NextHeader != wire.ProtoIPv6Fragment ||
				h.PayloadLen != len(part)+8 || !last && len(part)%8 != 0 || wire.IPv6Len+h.PayloadLen > mtu || &part[0] != &payload[at] {
				t.Fatalf("MTU %d: %+v %+v of %d bytes at %d", mtu, h, frag, len(part), at)
			}
			at += len(part)
		}
		if at != len(payload) {
			t.Errorf("MTU %d: %d bytes came out", mtu, at)
		}
	}
	if _, err := Fragment6(&h, payload, 55, 1); err != ErrMTU {
		t.Errorf("an MTU of 55: %v", err)
	}
}

// RFC 6724 section 5, rule 6: unique local addresses are used for unique local destinations.
func TestSourceLabels(t *testing.T) {
	own := []Own{{Prefix: prefix("2001:db8::1/64")}, {Prefix: prefix("fd00::1/64")}, {Prefix: prefix("fe80::1/64")}}
	for dst, want := range map[string]string{"2a00::1": "2001:db8::1", "fd11::2": "fd00::1", "fe80::9": "fe80::1", "ff02::1": "fe80::1", "ff0e::1": "2001:db8::1"} {
		if got, ok := Source(netip.MustParseAddr(dst), netip.Addr{}, own); !ok || got != netip.MustParseAddr(want) {
			t.Errorf("to %s from %v, want %s", dst, got, want)
		}
	}
}

// RFC 8201 section 4: the path MTU is never lowered below 1280 bytes, the smallest MTU that IPv6 allows for a link.
func TestPathMTU6(t *testing.T) {
	var p PathMTUs
	dst := netip.MustParseAddr("2001:db8::2")
	if p.Learn(0, dst, MinPathMTU6-1, 1500) {
		t.Error("no link is narrower than 1280 (RFC 8201 section 4)")
	}
	if !p.Learn(0, dst, MinPathMTU6, 1500) {
		t.Error("nothing was learnt")
	}
	if got, ok := p.Lookup(0, dst); !ok || got != (PathMTU{MTU: MinPathMTU6}) {
		t.Errorf("learnt %+v", got)
	}
	if p.Learn(0, dst, 600, 1280) {
		t.Error("1280 bytes are not too big")
	}
}
