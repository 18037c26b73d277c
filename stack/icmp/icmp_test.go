package icmp

import (
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

var (
	us   = netip.MustParseAddr("192.0.2.1")
	them = netip.MustParseAddr("198.51.100.7")
)

func packet(h wire.IPv4, payload []byte) []byte {
	h.PayloadLen = len(payload)
	b := make([]byte, h.Len()+len(payload))
	h.Put(b)
	copy(b[h.Len():], payload)
	return b
}

func TestQuote(t *testing.T) {
	seg := wire.TCP{SrcPort: 1234, DstPort: 80, Seq: 0xdeadbeef}
	b := make([]byte, seg.Len())
	seg.Put(b)
	whole := packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: us, Dst: them, Options: []byte{1, 1, 1, 0}}, b)
	q, ok := ParseQuote(whole[:24+8]) // RFC 792: the header and eight bytes
	want := Quote{Protocol: wire.ProtoTCP, Src: us, Dst: them, SrcPort: 1234, DstPort: 80, Seq: 0xdeadbeef, Length: len(whole)}
	if !ok || q != want {
		t.Errorf("quote of a TCP segment: %+v, %v; want %+v", q, ok, want)
	}
	echo := make([]byte, 8)
	wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(7, 9)}.Put(echo)
	q, ok = ParseQuote(packet(wire.IPv4{Protocol: wire.ProtoICMP, Src: us, Dst: them}, echo))
	if !ok || q.EchoID != 7 || q.EchoSeq != 9 {
		t.Errorf("quote of an echo request: %+v, %v", q, ok)
	}
}

func TestQuoteRefused(t *testing.T) {
	good := packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: us, Dst: them}, make([]byte, 8))
	six := append([]byte(nil), good...)
	six[0] = 0x65
	short := append([]byte(nil), good...)
	short[0] = 0x44
	for name, b := range map[string][]byte{
		"nothing":                     nil,
		"half a header":               good[:10],
		"seven bytes of UDP":          good[:27],
		"IPv6":                        six,
		"a header length of 16":       short,
		"a later fragment":            packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: us, Dst: them, FragOffset: 8}, make([]byte, 8)),
		"an ICMP message but no echo": packet(wire.IPv4{Protocol: wire.ProtoICMP, Src: us, Dst: them}, []byte{3, 3, 0, 0, 0, 0, 0, 0}),
	} {
		if q, ok := ParseQuote(b); ok {
			t.Errorf("%s was taken as a quote: %+v", name, q)
		}
	}
}

// RFC 1122 section 3.2.2: about what no error is sent.
func TestAnswerable(t *testing.T) {
	udp := make([]byte, 1000)
	fine := wire.IPv4{Protocol: wire.ProtoUDP, Src: them, Dst: us}
	about, quote, ok := Answerable(packet(fine, udp))
	if !ok || about.Src != them || len(quote) != MaxError-28 {
		t.Errorf("about a datagram of 1000 bytes: source %v, quote %d bytes, %v", about.Src, len(quote), ok)
	}
	change := func(f func(*wire.IPv4)) wire.IPv4 { h := fine; f(&h); return h }
	unreachable := []byte{byte(wire.ICMPv4Unreachable), 3, 0, 0, 0, 0, 0, 0}
	for name, b := range map[string][]byte{
		"an ICMP error":               packet(change(func(h *wire.IPv4) { h.Protocol = wire.ProtoICMP }), unreachable),
		"a later fragment":            packet(change(func(h *wire.IPv4) { h.FragOffset = 8 }), udp),
		"a packet to a multicast":     packet(change(func(h *wire.IPv4) { h.Dst = netip.MustParseAddr("224.0.0.1") }), udp),
		"a packet to all":             packet(change(func(h *wire.IPv4) { h.Dst = limitedBroadcast }), udp),
		"a packet from nobody":        packet(change(func(h *wire.IPv4) { h.Src = netip.IPv4Unspecified() }), udp),
		"a packet from a multicast":   packet(change(func(h *wire.IPv4) { h.Src = netip.MustParseAddr("224.0.0.1") }), udp),
		"something that is no packet": {1, 2, 3},
	} {
		if _, _, ok := Answerable(b); ok {
			t.Errorf("an error would be sent about %s", name)
		}
	}
	if _, _, ok := Answerable(packet(change(func(h *wire.IPv4) { h.Protocol = wire.ProtoICMP }), []byte{8, 0, 0, 0, 0, 0, 0, 0})); !ok {
		t.Error("no error would be sent about an echo request")
	}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		h    wire.ICMPv4
		want Kind
		hard bool
	}{
		{wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodePortUnreachable}, PortUnreachable, true},
		{wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeHostUnreachable}, HostUnreachable, false},
		{wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeNetUnreachable}, NetUnreachable, false},
		{wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeFragNeeded}, TooBig, false},
		{wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeAdminProhibited}, Prohibited, true},
		{wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: 99}, Ignored, false},
		{wire.ICMPv4{Type: wire.ICMPv4TimeExceeded}, TimeExceeded, false},
		{wire.ICMPv4{Type: wire.ICMPv4SourceQuench}, Ignored, false},
	} {
		if got := Classify(c.h); got != c.want || got.Hard() != c.hard {
			t.Errorf("type %d code %d: %v, hard %v", c.h.Type, c.h.Code, got, got.Hard())
		}
	}
}

func TestLimiter(t *testing.T) {
	var l Limiter
	count := func(now time.Duration, dst netip.Addr, tries int) (n int) {
		for range tries {
			if l.Allow(now, dst) {
				n++
			}
		}
		return n
	}
	if n := count(0, them, 100); n != targetBurst {
		t.Errorf("%d errors at once to one destination, want %d", n, targetBurst)
	}
	if n := count(0, us, 1); n != 1 {
		t.Error("one destination took the allowance of another")
	}
	if n := count(3*time.Second, them, 100); n != 3 {
		t.Errorf("%d errors after three seconds, want 3", n)
	}
	total := 0
	for i := range 1000 {
		total += count(10*time.Second, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 1)
	}
	if total > allBurst {
		t.Errorf("%d errors at once to all, want at most %d", total, allBurst)
	}
}

func FuzzQuote(f *testing.F) {
	f.Add(packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: us, Dst: them}, make([]byte, 8)))
	f.Add([]byte{0x4f, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		ParseQuote(b)
		Answerable(b)
	})
}
