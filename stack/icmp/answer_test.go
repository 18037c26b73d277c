package icmp

import (
	"bytes"
	"net/netip"
	"testing"

	"loam/wire"
)

var (
	us   = netip.MustParseAddr("192.0.2.1")
	them = netip.MustParseAddr("198.51.100.7")
)

// packet returns an IPv4 packet with header h.
func packet(h wire.IPv4, payload []byte) []byte {
	h.PayloadLen = len(payload)
	b := make([]byte, h.Len()+len(payload))
	h.Put(b)
	copy(b[h.Len():], payload)
	return b
}

// message returns an ICMP message without data.
func message(kind wire.ICMPv4Type) []byte {
	b := make([]byte, wire.ICMPv4Len)
	wire.ICMPv4{Type: kind}.Put(b)
	return b
}

func TestAnswerQuotesAsMuchAsFits(t *testing.T) {
	for _, test := range []struct{ options, payload, want int }{
		{0, 0, 20},
		{0, 8, 28},
		{0, 528, 548},
		{0, 529, 548},
		{40, 1000, 548},
	} {
		h := wire.IPv4{Protocol: wire.ProtoUDP, Src: them, Dst: us, Options: make([]byte, test.options)}
		b := packet(h, make([]byte, test.payload))
		padded := append(bytes.Clone(b), make([]byte, 30)...)
		about, quote, ok := Answerable(padded)
		if !ok || about.Src != them || about.Dst != us {
			t.Fatalf("about %d bytes: %+v, %v", test.payload, about, ok)
		}
		if !bytes.Equal(quote, b[:test.want]) {
			t.Errorf("about %d bytes with %d of options: %d are quoted, want %d", test.payload, test.options, len(quote), test.want)
		}
	}
}

// RFC 1122 section 3.2.2 and RFC 1812 section 4.3.2.7: packets about which no error is sent, and packets
// about which one may be sent.
func TestAnswerable(t *testing.T) {
	from := func(src, dst string) wire.IPv4 {
		return wire.IPv4{Protocol: wire.ProtoUDP, Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst)}
	}
	const us, them = "192.0.2.1", "198.51.100.7"
	later, first, icmp := from(them, us), from(them, us), from(them, us)
	later.FragOffset = 8
	first.MoreFragment = true
	icmp.Protocol = wire.ProtoICMP
	udp := make([]byte, 16)
	for sentence, test := range map[string]struct {
		packet []byte
		want   bool
	}{
		"a datagram":                            {packet(from(them, us), udp), true},
		"a first fragment":                      {packet(first, udp), true},
		"a later fragment":                      {packet(later, udp), false},
		"a packet to a multicast group":         {packet(from(them, "224.0.0.1"), udp), false},
		"a packet to all":                       {packet(from(them, "255.255.255.255"), udp), false},
		"a packet to nobody":                    {packet(from(them, "0.0.0.0"), udp), false},
		"a packet from nobody":                  {packet(from("0.0.0.0", us), udp), false},
		"a packet from this network":            {packet(from("0.1.2.3", us), udp), false},
		"a packet from a multicast group":       {packet(from("239.1.2.3", us), udp), false},
		"a packet from a reserved address":      {packet(from("240.0.0.1", us), udp), false},
		"a packet from all":                     {packet(from("255.255.255.255", us), udp), false},
		"a packet from loopback":                {packet(from("127.0.0.1", us), udp), false},
		"a packet within loopback":              {packet(from("127.0.0.1", "127.0.0.2"), udp), true},
		"an echo request":                       {packet(icmp, message(wire.ICMPv4Echo)), true},
		"an echo reply":                         {packet(icmp, message(wire.ICMPv4EchoReply)), true},
		"a timestamp request":                   {packet(icmp, message(wire.ICMPv4Timestamp)), true},
		"an ICMP error":                         {packet(icmp, message(wire.ICMPv4Unreachable)), false},
		"a redirect":                            {packet(icmp, message(wire.ICMPv4Redirect)), false},
		"an ICMP message that may be an error":  {packet(icmp, message(200)), false},
		"an ICMP message that is cut short":     {packet(icmp, []byte{8}), false},
		"something that is no packet":           {[]byte{1, 2, 3}, false},
		"a packet that is shorter than it says": {packet(from(them, us), udp)[:30], false},
	} {
		if _, _, ok := Answerable(test.packet); ok != test.want {
			t.Errorf("an error may be sent about %s: %v, want %v", sentence, ok, test.want)
		}
	}
}

// FuzzAnswerable also checks that ParseQuote accepts a quote that is long enough, so that two Loam hosts
// understand each other.
func FuzzAnswerable(f *testing.F) {
	f.Add(packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: them, Dst: us}, make([]byte, 20)))
	f.Add(packet(wire.IPv4{Protocol: wire.ProtoICMP, Src: them, Dst: us}, message(wire.ICMPv4Echo)))
	f.Fuzz(func(t *testing.T, b []byte) {
		about, quote, ok := Answerable(b)
		if !ok {
			return
		}
		if len(quote) > maxQuote || !bytes.HasPrefix(b, quote) {
			t.Fatalf("%d bytes are quoted", len(quote))
		}
		q, ok := ParseQuote(quote)
		if ok && (q.Src != about.Src || q.Dst != about.Dst || q.Protocol != about.Protocol) {
			t.Fatalf("quoted %+v, understood %+v", about, q)
		}
		if !ok && about.PayloadLen >= minQuoted && about.Protocol != wire.ProtoICMP {
			t.Fatalf("the quote of %+v is not understood", about)
		}
	})
}
