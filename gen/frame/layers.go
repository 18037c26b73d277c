package frame

import (
	"encoding/binary"
	"net/netip"

	"loam/wire"
)

// The table of layers: their fields, the layers that they can carry, and their default contents. To add a layer, only
// this table has to be changed.

// field is a field of a header.
type field struct {
	name  string
	bit   int // offset in bits from the start of the header
	width int // width in bits: at most 48, or 128
	form  form
}

// space is a set of numbers by which a header identifies the next layer, or a kind of next layer without numbers.
type space uint8

const (
	nothing   space = iota
	etherType       // EtherType in Ethernet and VLAN tags
	greType         // EtherType, including transparent Ethernet bridging
	proto4          // IP protocol number in IPv4
	proto6          // IP protocol number in IPv6
	labels          // payload of an MPLS stack, unnumbered
	udpPort         // UDP destination port
	chunks          // SCTP chunks, which have their own types
	vxlanOnly       // an Ethernet frame; VXLAN has no number for it
	gtpOnly         // an IP packet; GTP-U has no number for it
	data            // a payload, which has no number
)

// sumRule describes the checksum of a layer.
type sumRule struct {
	at     int  // offset of the field; 0: no checksum
	header bool // the checksum covers only the header, not the payload
	pseudo bool // the checksum also covers the pseudo header of the preceding IP header
	noZero bool // a computed 0 is sent as 0xffff, because 0 means no checksum
	crc    bool // the checksum is a 32-bit CRC-32C instead of the Internet checksum
}

// kind is a type of layer.
type kind struct {
	name    string
	summary string
	fields  []field
	length  int
	put     func(b []byte) // writes the default header, which has the size of the field length in bytes
	carries space
	next    string           // name of the field that identifies the next layer
	numbers map[space]uint64 // the layer's number in each space of numbers: the value by which the preceding layer's field next identifies it
	proto   wire.Protocol    // protocol number of this layer in the pseudo header of its checksum
	sum     sumRule
	lenAt   int // offset of a 16-bit length field; 0: none
	lenBase int // number of bytes at the start of the layer that the length field does not count
	align   int // the length of the layer with its payload is a multiple of this number of bytes; 0: any length
}

const (
	protoIPv4 = 4  // IPv4 in IP (RFC 2003)
	protoIPv6 = 41 // IPv6 in IP (RFC 2473)
	protoSCTP = 132
	protoTest = 253
	typeTest  = 0x88b5 // EtherType for local experiments (IEEE 802)
)

var (
	etherFields = []field{{"dst", 0, 48, mac}, {"src", 48, 48, mac}, {"type", 96, 16, number}}
	tagFields   = []field{{"pcp", 0, 3, number}, {"dei", 3, 1, number}, {"id", 4, 12, number}, {"type", 16, 16, number}}
	icmpFields  = []field{
		{"type", 0, 8, number}, {"code", 8, 8, number}, {"checksum", 16, 16, number},
		{"id", 32, 16, number}, {"seq", 48, 16, number},
	}
	portFields = []field{{"sport", 0, 16, number}, {"dport", 16, 16, number}}
)

var (
	defaultSource      = wire.MAC{2, 0, 0, 0, 0, 1}
	defaultDestination = wire.MAC{2, 0, 0, 0, 0, 2}
	defaultSource4     = netip.AddrFrom4([4]byte{192, 0, 2, 1}) // example address for documentation (RFC 5737)
	defaultDst4        = netip.AddrFrom4([4]byte{192, 0, 2, 2})
	defaultSource6     = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: 1}) // example address for documentation (RFC 3849)
	defaultDst6        = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: 2})
)

// kinds is the table of layers. GRE is in gre.go, because its fields depend on the template.
var kinds = []kind{
	{
		name: "eth", summary: "Ethernet II", fields: etherFields, length: wire.EthernetLen,
		put: func(b []byte) {
			h := wire.Ethernet{Dst: defaultDestination, Src: defaultSource, Type: typeTest}
			h.Put(b)
		},
		carries: etherType, next: "type", numbers: map[space]uint64{greType: uint64(wire.TypeTEB), vxlanOnly: 0},
	},
	{
		name: "vlan", summary: "802.1Q tag", fields: tagFields, length: wire.VLANTagLen,
		put:     func(b []byte) { binary.BigEndian.PutUint32(b, 1<<16|typeTest) },
		carries: etherType, next: "type", numbers: map[space]uint64{etherType: uint64(wire.TypeVLAN)},
	},
	{
		name: "qinq", summary: "802.1ad service tag", fields: tagFields, length: wire.VLANTagLen,
		put:     func(b []byte) { binary.BigEndian.PutUint32(b, 1<<16|typeTest) },
		carries: etherType, next: "type", numbers: map[space]uint64{etherType: uint64(wire.TypeQinQ)},
	},
	{
		name: "mpls", summary: "MPLS label", length: wire.MPLSLen,
		fields:  []field{{"label", 0, 20, number}, {"tc", 20, 3, number}, {"s", 23, 1, number}, {"ttl", 24, 8, number}},
		put:     func(b []byte) { wire.MPLS{Label: 16, TTL: 64}.Put(b) },
		carries: labels, numbers: map[space]uint64{etherType: uint64(wire.TypeMPLS), greType: uint64(wire.TypeMPLS), labels: 0},
	},
	{
		name: "arp", summary: "ARP for IPv4", length: wire.ARPLen,
		fields: []field{
			{"htype", 0, 16, number}, {"ptype", 16, 16, number}, {"hlen", 32, 8, number}, {"plen", 40, 8, number},
			{"op", 48, 16, number}, {"sha", 64, 48, mac}, {"spa", 112, 32, address4}, {"tha", 144, 48, mac}, {"tpa", 192, 32, address4},
		},
		put: func(b []byte) {
			h := wire.ARP{Op: wire.ARPRequest, SenderMAC: defaultSource, SenderIP: defaultSource4, TargetIP: defaultDst4}
			h.Put(b)
		},
		numbers: map[space]uint64{etherType: uint64(wire.TypeARP)},
	},
	{
		name: "ip", summary: "IPv4", length: wire.IPv4MinLen,
		fields: []field{
			{"version", 0, 4, number}, {"ihl", 4, 4, number}, {"dscp", 8, 6, number}, {"ecn", 14, 2, number},
			{"len", 16, 16, number}, {"id", 32, 16, number}, {"df", 49, 1, number}, {"mf", 50, 1, number},
			{"frag", 51, 13, number}, {"ttl", 64, 8, number}, {"proto", 72, 8, number}, {"checksum", 80, 16, number},
			{"src", 96, 32, address4}, {"dst", 128, 32, address4},
		},
		put: func(b []byte) {
			h := wire.IPv4{TTL: 64, DontFragment: true, Protocol: protoTest, Src: defaultSource4, Dst: defaultDst4}
			h.Put(b)
		},
		carries: proto4, next: "proto",
		numbers: map[space]uint64{etherType: uint64(wire.TypeIPv4), greType: uint64(wire.TypeIPv4), labels: 0, gtpOnly: 0, proto4: protoIPv4, proto6: protoIPv4},
		sum:     sumRule{at: 10, header: true}, lenAt: 2,
	},
	{
		name: "ip6", summary: "IPv6", length: wire.IPv6Len,
		fields: []field{
			{"version", 0, 4, number}, {"dscp", 4, 6, number}, {"ecn", 10, 2, number}, {"flow", 12, 20, number},
			{"len", 32, 16, number}, {"proto", 48, 8, number}, {"ttl", 56, 8, number},
			{"src", 64, 128, address6}, {"dst", 192, 128, address6},
		},
		put: func(b []byte) {
			h := wire.IPv6{HopLimit: 64, NextHeader: protoTest, Src: defaultSource6, Dst: defaultDst6}
			h.Put(b)
		},
		carries: proto6, next: "proto",
		numbers: map[space]uint64{etherType: uint64(wire.TypeIPv6), greType: uint64(wire.TypeIPv6), labels: 0, gtpOnly: 0, proto4: protoIPv6, proto6: protoIPv6},
		lenAt:   4, lenBase: wire.IPv6Len,
	},
	{
		name: "icmp", summary: "ICMP for IPv4", fields: icmpFields, length: wire.ICMPv4Len,
		put:     func(b []byte) { wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(1, 1)}.Put(b) },
		carries: data, numbers: map[space]uint64{proto4: uint64(wire.ProtoICMP)}, sum: sumRule{at: 2},
	},
	{
		name: "icmp6", summary: "ICMP for IPv6", fields: icmpFields, length: wire.ICMPv6Len,
		put:     func(b []byte) { wire.ICMPv6{Type: wire.ICMPv6Echo, Rest: wire.EchoRest(1, 1)}.Put(b) },
		carries: data, numbers: map[space]uint64{proto6: uint64(wire.ProtoICMPv6)},
		proto: wire.ProtoICMPv6, sum: sumRule{at: 2, pseudo: true},
	},
	{
		name: "udp", summary: "UDP", length: wire.UDPLen,
		fields: append(portFields[:2:2], field{"len", 32, 16, number}, field{"checksum", 48, 16, number}),
		put: func(b []byte) {
			h := wire.UDP{SrcPort: 1024, DstPort: DiscardPort}
			h.Put(b)
		},
		carries: udpPort, next: "dport", numbers: map[space]uint64{proto4: uint64(wire.ProtoUDP), proto6: uint64(wire.ProtoUDP)},
		proto: wire.ProtoUDP, sum: sumRule{at: 6, pseudo: true, noZero: true}, lenAt: 4,
	},
	{
		name: "tcp", summary: "TCP without options", length: wire.TCPMinLen,
		fields: append(portFields[:2:2], field{"seq", 32, 32, number}, field{"ack", 64, 32, number}, field{"offset", 96, 4, number},
			field{"flags", 103, 9, tcpFlags}, field{"window", 112, 16, number}, field{"checksum", 128, 16, number}, field{"urgent", 144, 16, number}),
		put: func(b []byte) {
			h := wire.TCP{SrcPort: 1024, DstPort: DiscardPort, Flags: wire.SYN, Window: 65535}
			h.Put(b)
		},
		carries: data, numbers: map[space]uint64{proto4: uint64(wire.ProtoTCP), proto6: uint64(wire.ProtoTCP)},
		proto: wire.ProtoTCP, sum: sumRule{at: 16, pseudo: true},
	},
	{ // the common header of SCTP: RFC 9260 section 3.1
		name: "sctp", summary: "SCTP", length: SCTPLen,
		fields: append(portFields[:2:2], field{"tag", 32, 32, number}, field{"checksum", 64, 32, number}),
		put: func(b []byte) {
			binary.BigEndian.PutUint64(b, 1024<<48|DiscardPort<<32|1)
		},
		carries: chunks, numbers: map[space]uint64{proto4: protoSCTP, proto6: protoSCTP, udpPort: SCTPPort},
		sum: sumRule{at: 8, crc: true},
	},
	{ // RFC 9260 section 3.3.1: a DATA chunk with a whole message. Its length is a multiple of four, so that no padding follows.
		name: "sctpdata", summary: "SCTP DATA chunk", length: SCTPDataLen,
		fields: []field{
			{"type", 0, 8, number}, {"flags", 8, 8, number}, {"len", 16, 16, number}, {"tsn", 32, 32, number},
			{"stream", 64, 16, number}, {"seq", 80, 16, number}, {"ppid", 96, 32, number},
		},
		put: func(b []byte) {
			const beginning, end = 2, 1
			binary.BigEndian.PutUint64(b, (beginning|end)<<48|1)
			binary.BigEndian.PutUint64(b[8:], 0)
		},
		carries: data, numbers: map[space]uint64{chunks: 0}, lenAt: 2, align: 4,
	},
	{
		name: "vxlan", summary: "VXLAN", fields: []field{{"flags", 0, 8, number}, {"vni", 32, 24, number}}, length: wire.VXLANLen,
		put:     func(b []byte) { wire.VXLAN{VNI: 1}.Put(b) },
		carries: vxlanOnly, numbers: map[space]uint64{udpPort: wire.VXLANPort},
	},
	{ // RFC 8926 section 3.4; the types are the same as in GRE
		name: "geneve", summary: "Geneve without options", length: GeneveLen,
		fields: []field{
			{"version", 0, 2, number}, {"options", 2, 6, number}, {"control", 8, 1, number}, {"critical", 9, 1, number},
			{"type", 16, 16, number}, {"vni", 32, 24, number},
		},
		put:     func(b []byte) { binary.BigEndian.PutUint64(b, uint64(wire.TypeTEB)<<32|1<<8) },
		carries: greType, next: "type", numbers: map[space]uint64{udpPort: GenevePort},
	},
	{ // 3GPP TS 29.281 section 5.1: a user packet (G-PDU), without optional fields
		name: "gtpu", summary: "GTP-U", length: GTPULen,
		fields:  []field{{"flags", 0, 8, number}, {"type", 8, 8, number}, {"len", 16, 16, number}, {"teid", 32, 32, number}},
		put:     func(b []byte) { binary.BigEndian.PutUint64(b, 0x30ff<<48|1) },
		carries: gtpOnly, numbers: map[space]uint64{udpPort: GTPUPort},
		lenAt: 2, lenBase: GTPULen,
	},
}

// UDP destination ports (IANA) and header sizes in bytes.
const (
	GenevePort = 6081
	GeneveLen  = 8
	GTPUPort   = 2152
	GTPULen    = 8
	// SCTP runs over IP, or over UDP to SCTPPort (RFC 6951).
	SCTPPort    = 9899
	SCTPLen     = 12
	SCTPDataLen = 16
)

// DiscardPort is the default destination port: discard (RFC 863).
const DiscardPort = 9

// kindOf returns the layer kind with the given name. has is a function that reports which
// fields the template gives.
func kindOf(name string, has func(field string) bool) (*kind, bool) {
	if name == "gre" {
		return greKind(has), true
	}
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i], true
		}
	}
	return nil, false
}

// field returns the field with the given name.
func (k *kind) field(name string) (*field, bool) {
	for i := range k.fields {
		if k.fields[i].name == name {
			return &k.fields[i], true
		}
	}
	return nil, false
}
