package match

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"loam/wire"
)

// frame returns an Ethernet frame with a UDP datagram.
func frame(src, dst string, port uint16) []byte {
	from, to := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	ipLen, kind := wire.IPv4MinLen, wire.TypeIPv4
	if from.Is6() {
		ipLen, kind = ipv6Len, wire.TypeIPv6
	}
	b := make([]byte, wire.EthernetLen+ipLen+wire.UDPLen)
	eth := wire.Ethernet{Type: kind}
	eth.Put(b)
	p := b[wire.EthernetLen:]
	if from.Is6() {
		p[0], p[ipv6Next] = 0x60, byte(wire.ProtoUDP)
		copy(p[ipv6Src:], from.AsSlice())
		copy(p[ipv6Dst:], to.AsSlice())
	} else {
		ip := wire.IPv4{TTL: 64, Protocol: wire.ProtoUDP, Src: from, Dst: to, PayloadLen: wire.UDPLen}
		ip.Put(p)
	}
	udp := wire.UDP{SrcPort: 9, DstPort: port}
	udp.Put(p[ipLen:])
	return b
}

func TestAgrees(t *testing.T) {
	prefix := netip.MustParsePrefix
	v4, v6 := frame("192.0.2.1", "192.0.2.2", 7), frame("2001:db8::1", "2001:db8::2", 7)
	fragment := frame("192.0.2.1", "192.0.2.2", 7)
	binary.BigEndian.PutUint16(fragment[wire.EthernetLen+ipv4Frag:], 1)
	for _, c := range []struct {
		why  string
		rule Rule
		b    []byte
		want bool
	}{
		{"no field: every frame", Rule{}, v4, true},
		{"but nothing that is none", Rule{}, v4[:13], false},
		{"the type", Rule{EtherType: wire.TypeIPv4}, v4, true},
		{"another type", Rule{EtherType: wire.TypeARP}, v4, false},
		{"the protocol", Rule{Protocol: wire.ProtoUDP}, v4, true},
		{"the protocol, IPv6", Rule{Protocol: wire.ProtoUDP}, v6, true},
		{"another protocol", Rule{Protocol: wire.ProtoTCP}, v6, false},
		{"source", Rule{Remote: prefix("192.0.2.0/31")}, v4, true},
		{"another source", Rule{Remote: prefix("192.0.2.2/31")}, v4, false},
		{"a source of the other version", Rule{Remote: prefix("192.0.2.0/31")}, v6, false},
		{"destination", Rule{Local: prefix("2001:db8::2/128")}, v6, true},
		{"another destination", Rule{Local: prefix("2001:db8::/127")}, v6, false},
		{"the port", Rule{Ports: Port(7)}, v4, true},
		{"a range", Rule{Ports: Ports{0, 7}}, v6, true},
		{"another port", Rule{Ports: Ports{8, 9}}, v4, false},
		{"no port in a later fragment", Rule{Ports: Port(7)}, fragment, false},
		{"cut off", Rule{Ports: Port(7)}, v4[:wire.EthernetLen+22], false},
		{"no IP header", Rule{Protocol: wire.ProtoUDP}, v6[:40], false},
	} {
		if got := c.rule.Agrees(c.b); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}

func TestAny(t *testing.T) {
	b := frame("192.0.2.1", "192.0.2.2", 7)
	if !Any(nil, b) {
		t.Error("without a rule every frame is meant")
	}
	if !Any([]Rule{{Ports: Port(8)}, {Ports: Port(7)}}, b) || Any([]Rule{{Ports: Port(8)}}, b) {
		t.Error("one of the rules is enough, none is not")
	}
}

// FuzzAgrees checks that no combination of frame and rule panics.
func FuzzAgrees(f *testing.F) {
	f.Add(frame("192.0.2.1", "192.0.2.2", 7), uint8(17), uint16(7))
	f.Add(frame("2001:db8::1", "2001:db8::2", 7), uint8(0), uint16(7))
	f.Fuzz(func(t *testing.T, b []byte, proto uint8, port uint16) {
		r := Rule{Protocol: wire.Protocol(proto), Ports: Port(port)}
		if r.Agrees(b) && proto == 0 && port == 0 && len(b) < wire.EthernetLen {
			t.Error("agrees with a runt")
		}
	})
}
