package icmp

import (
	"bytes"
	"testing"

	"loam/wire"
)

func TestQuoteOfATCPSegment(t *testing.T) {
	seg := wire.TCP{SrcPort: 1234, DstPort: 80, Seq: 0xdeadbeef}
	b := make([]byte, seg.Len())
	seg.Put(b)
	whole := packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: us, Dst: them, Options: []byte{1, 1, 1, 0}}, b)
	want := Quote{
		Protocol: wire.ProtoTCP, Src: us, Dst: them,
		SrcPort: 1234, DstPort: 80, Seq: 0xdeadbeef, Length: len(whole), Header: 24,
	}
	for _, n := range []int{24 + 8, len(whole)} { // RFC 792: a quote has at least the IP header and eight bytes
		if q, ok := ParseQuote(whole[:n]); !ok || q != want {
			t.Errorf("%d bytes: %+v, %v; want %+v", n, q, ok, want)
		}
	}
}

func TestQuoteOfADatagram(t *testing.T) {
	udp := wire.UDP{SrcPort: 5353, DstPort: 53, PayloadLen: 100}
	b := make([]byte, 108)
	udp.Put(b)
	whole := packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: us, Dst: them}, b)
	want := Quote{Protocol: wire.ProtoUDP, Src: us, Dst: them, SrcPort: 5353, DstPort: 53, Length: 128, Header: 20}
	if q, ok := ParseQuote(whole[:28]); !ok || q != want {
		t.Errorf("%+v, %v; want %+v", q, ok, want)
	}
}

func TestQuoteOfAnEchoRequest(t *testing.T) {
	b := make([]byte, 8)
	wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(7, 9)}.Put(b)
	q, ok := ParseQuote(packet(wire.IPv4{Protocol: wire.ProtoICMP, Src: us, Dst: them}, b))
	if !ok || q.EchoID != 7 || q.EchoSeq != 9 || q.SrcPort != 0 || q.DstPort != 0 {
		t.Errorf("%+v, %v", q, ok)
	}
}

func TestQuoteOfAnotherProtocol(t *testing.T) {
	q, ok := ParseQuote(packet(wire.IPv4{Protocol: 132, Src: us, Dst: them}, make([]byte, 8)))
	if !ok || q.Protocol != 132 || q.SrcPort != 0 {
		t.Errorf("%+v, %v", q, ok)
	}
}

func TestQuoteOfAFirstFragment(t *testing.T) {
	h := wire.IPv4{Protocol: wire.ProtoUDP, Src: us, Dst: them, MoreFragment: true}
	if _, ok := ParseQuote(packet(h, make([]byte, 8))); !ok {
		t.Error("it is not understood")
	}
}

func TestQuoteRefused(t *testing.T) {
	good := packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: us, Dst: them}, make([]byte, 8))
	first := func(b byte) []byte { return append([]byte{b}, good[1:]...) }
	later := wire.IPv4{Protocol: wire.ProtoUDP, Src: us, Dst: them, FragOffset: 8}
	for sentence, b := range map[string][]byte{
		"nothing":                      nil,
		"half a header":                good[:10],
		"seven bytes of UDP":           good[:27],
		"IPv6":                         first(0x65),
		"a header of 16 bytes":         first(0x44),
		"a header of 60 bytes":         first(0x4f),
		"a later fragment":             packet(later, make([]byte, 8)),
		"an ICMP error":                packet(wire.IPv4{Protocol: wire.ProtoICMP, Src: us, Dst: them}, message(wire.ICMPv4Unreachable)),
		"an echo reply, never a query": packet(wire.IPv4{Protocol: wire.ProtoICMP, Src: us, Dst: them}, message(wire.ICMPv4EchoReply)),
	} {
		if q, ok := ParseQuote(b); ok {
			t.Errorf("%s is taken as a quote: %+v", sentence, q)
		}
	}
}

func TestQuoteDoesNotAllocate(t *testing.T) {
	b := packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: us, Dst: them}, make([]byte, 20))
	if n := testing.AllocsPerRun(100, func() {
		ParseQuote(b)
		Answerable(b)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzQuote(f *testing.F) {
	f.Add(packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: us, Dst: them}, make([]byte, 8)))
	f.Add(packet(wire.IPv4{Protocol: wire.ProtoICMP, Src: us, Dst: them}, message(wire.ICMPv4Echo)))
	f.Add([]byte{0x4f, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		q, ok := ParseQuote(b)
		if !ok {
			return
		}
		if q.Src.Is4() != q.Dst.Is4() || !bytes.Contains(b, q.Src.AsSlice()) {
			t.Fatalf("%+v is not in the bytes", q)
		}
		// Bytes after the mandatory part of a quote make no difference.
		headers := int(b[0]&0xf) * 4
		if q.Src.Is6() {
			_, rest, _, _ := wire.SkipIPv6Ext(wire.Protocol(b[6]), b[wire.IPv6Len:])
			headers = len(b) - len(rest)
		}
		short := b[:headers+minQuoted]
		if again, ok := ParseQuote(short); !ok || again != q {
			t.Fatalf("%+v of %d bytes, %+v of %d", q, len(b), again, len(short))
		}
	})
}
