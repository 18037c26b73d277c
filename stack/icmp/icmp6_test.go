package icmp

import (
	"bytes"
	"net/netip"
	"testing"

	"loam/wire"
)

var (
	us6   = netip.MustParseAddr("2001:db8::1")
	them6 = netip.MustParseAddr("2001:db8::2")
)

func packet6(h wire.IPv6, payload []byte) []byte {
	if !h.Src.IsValid() {
		h.Src = them6
	}
	if !h.Dst.IsValid() {
		h.Dst = us6
	}
	h.PayloadLen = len(payload)
	b := make([]byte, wire.IPv6Len, wire.IPv6Len+len(payload))
	h.Put(b)
	return append(b, payload...)
}

func message6(kind wire.ICMPv6Type) []byte {
	b := make([]byte, wire.ICMPv6Len)
	wire.ICMPv6{Type: kind}.Put(b)
	return b
}

// RFC 4443 section 2.4 (e): about some packets no ICMP error may be sent.
func TestAnswerable6(t *testing.T) {
	udp, all := make([]byte, 16), netip.MustParseAddr("ff02::1")
	later, first := []byte{17, 0, 0, 8, 0, 0, 0, 1}, []byte{17, 0, 0, 1, 0, 0, 0, 1}
	for sentence, test := range map[string]struct {
		packet       []byte
		want, toMany bool // want: an error may be sent; toMany: a "packet too big" error may be sent
	}{
		"a datagram":                      {packet6(wire.IPv6{NextHeader: wire.ProtoUDP}, udp), true, true},
		"a packet to many":                {packet6(wire.IPv6{NextHeader: wire.ProtoUDP, Dst: all}, udp), false, true},
		"a packet from nobody":            {packet6(wire.IPv6{NextHeader: wire.ProtoUDP, Src: netip.IPv6Unspecified()}, udp), false, false},
		"a packet from a group":           {packet6(wire.IPv6{NextHeader: wire.ProtoUDP, Src: all}, udp), false, false},
		"a packet from the loopback":      {packet6(wire.IPv6{NextHeader: wire.ProtoUDP, Src: netip.IPv6Loopback()}, udp), false, false},
		"an echo":                         {packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, message6(wire.ICMPv6Echo)), true, true},
		"an error":                        {packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, message6(wire.ICMPv6Unreachable)), false, false},
		"an error that is not known":      {packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, message6(99)), false, false},
		"a redirect":                      {packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, message6(wire.ICMPv6Redirect)), false, false},
		"half a message":                  {packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, []byte{128}), false, false},
		"a fragment other than the first": {packet6(wire.IPv6{NextHeader: wire.ProtoIPv6Fragment}, append(later, udp...)), false, false},
		"the first fragment":              {packet6(wire.IPv6{NextHeader: wire.ProtoIPv6Fragment}, append(first, udp...)), true, true},
		"nothing":                         {nil, false, false},
	} {
		for many, want := range map[bool]bool{false: test.want, true: test.toMany} {
			if _, _, ok := Answerable6(test.packet, many); ok != want {
				t.Errorf("%s, to many %v: %v, want %v", sentence, many, ok, want)
			}
		}
	}
	long := packet6(wire.IPv6{NextHeader: wire.ProtoUDP}, make([]byte, 1400))
	if _, quote, _ := Answerable6(long, false); len(quote) != 1232 || !bytes.HasPrefix(long, quote) {
		t.Errorf("%d bytes are quoted, want as many as make a packet of 1280", len(quote))
	}
}

// Errors by type and code of the message, as in Linux: its table tab_unreach for destination unreachable, and the
// other types.
func TestClassify6(t *testing.T) {
	for _, test := range []struct {
		kind wire.ICMPv6Type
		code uint8
		want Kind
		hard bool
	}{
		{wire.ICMPv6Unreachable, 0, NetUnreachable, false},
		{wire.ICMPv6Unreachable, 1, Prohibited, true},
		{wire.ICMPv6Unreachable, 2, HostUnreachable, false},
		{wire.ICMPv6Unreachable, 3, HostUnreachable, false},
		{wire.ICMPv6Unreachable, 4, PortUnreachable, true},
		{wire.ICMPv6Unreachable, 5, Prohibited, true},
		{wire.ICMPv6Unreachable, 6, Prohibited, true},
		{wire.ICMPv6Unreachable, 7, Ignored, false},
		{wire.ICMPv6PacketTooBig, 0, TooBig, false},
		{wire.ICMPv6TimeExceeded, 0, TimeExceeded, false},
		{wire.ICMPv6ParamProblem, 1, ParameterProblem, true},
		{wire.ICMPv6Echo, 0, Ignored, false},
	} {
		if got := Classify6(wire.ICMPv6{Type: test.kind, Code: test.code}); got != test.want || got.Hard() != test.hard {
			t.Errorf("type %d code %d is %d, hard %v", test.kind, test.code, got, got.Hard())
		}
	}
}

func TestQuote6(t *testing.T) {
	tcp := []byte{0, 80, 4, 0, 1, 2, 3, 4, 9, 9}
	options := []byte{6, 0, 1, 4, 0, 0, 0, 0}
	want := Quote{Protocol: wire.ProtoTCP, Src: us6, Dst: them6, SrcPort: 80, DstPort: 1024, Seq: 0x01020304}
	for sentence, b := range map[string][]byte{
		"a segment":              packet6(wire.IPv6{NextHeader: wire.ProtoTCP, Src: us6, Dst: them6}, tcp),
		"one behind some option": packet6(wire.IPv6{NextHeader: wire.ProtoDestOptions, Src: us6, Dst: them6}, append(options, tcp...)),
	} {
		w := want
		w.Length, w.Header = len(b), len(b)-len(tcp)
		if q, ok := ParseQuote(b); !ok || q != w {
			t.Errorf("%s: %+v, %v", sentence, q, ok)
		}
	}
	if _, ok := ParseQuote(packet6(wire.IPv6{NextHeader: wire.ProtoTCP}, tcp[:7])); ok {
		t.Error("seven bytes are too few")
	}
	if _, ok := ParseQuote(packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, message6(wire.ICMPv6EchoReply))); ok {
		t.Error("no socket sends replies")
	}
	if q, ok := ParseQuote(packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, []byte{128, 0, 0, 0, 0, 7, 0, 1})); !ok || q.EchoID != 7 || q.EchoSeq != 1 {
		t.Errorf("an echo: %+v, %v", q, ok)
	}
}

// ParseQuote accepts what Answerable6 quotes.
func FuzzAnswerable6(f *testing.F) {
	f.Add(packet6(wire.IPv6{NextHeader: wire.ProtoTCP}, make([]byte, 20)))
	f.Add(packet6(wire.IPv6{NextHeader: wire.ProtoDestOptions}, append([]byte{6, 0, 1, 4, 0, 0, 0, 0}, make([]byte, 20)...)))
	f.Add(packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, message6(wire.ICMPv6Echo)))
	f.Fuzz(func(t *testing.T, b []byte) {
		about, quote, ok := Answerable6(b, true)
		if !ok {
			return
		}
		if len(quote) > maxQuote6 || !bytes.HasPrefix(b, quote) {
			t.Fatalf("%d bytes are quoted", len(quote))
		}
		if q, ok := ParseQuote(quote); ok && (q.Src != about.Src || q.Dst != about.Dst) {
			t.Fatalf("quoted %+v, understood %+v", about, q)
		}
	})
}
