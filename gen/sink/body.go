package sink

import (
	"encoding/binary"

	"loam/gen/measure"
	"loam/wire"
)

// maxDepth is the maximum number of headers that are parsed; a template cannot have more.
const maxDepth = 16

// find returns the tag of a frame. The tag is at the start of the payload of UDP, TCP or ICMP over IPv4 or IPv6, also
// within VLAN tags, MPLS labels and tunnels. If the frame has none of these protocols, find looks after the last header
// that it can parse.
func find(b []byte) (measure.Tag, bool) {
	// Fast path for most frames: UDP over IPv4 or IPv6, without VLAN tags.
	const udp4 = wire.EthernetLen + wire.IPv4MinLen + wire.UDPLen
	const udp6 = wire.EthernetLen + wire.IPv6Len + wire.UDPLen
	if len(b) >= udp4+measure.TagLen {
		at := udp4
		if wire.EtherType(binary.BigEndian.Uint16(b[12:])) == wire.TypeIPv6 {
			at = udp6
		}
		if len(b) >= at+measure.TagLen {
			if tag, ok := measure.ParseTag(b[at:]); ok {
				return tag, true
			}
		}
	}
	return measure.ParseTag(body(b))
}

// UDP destination ports (IANA) and header sizes in bytes. Package frame writes these headers.
const (
	genevePort, geneveLen = 6081, 8
	gtpuPort, gtpuLen     = 2152, 8
	sctpPort, sctpLen     = 9899, 12
	sctpDataLen           = 16
)

// walker parses the headers of a frame, from the outermost to the innermost.
type walker struct {
	rest []byte
	next func(*walker) bool // parses the next header; nil: rest is the payload
}

// body returns the bytes after the last header that can be parsed, or nil if the frame is malformed.
func body(b []byte) []byte {
	w := walker{b, (*walker).ethernet}
	for range maxDepth {
		if w.next == nil {
			return w.rest
		}
		step := w.next
		w.next = nil
		if !step(&w) {
			return nil
		}
	}
	return nil
}

func (w *walker) ethernet() bool {
	h, rest, err := wire.ParseEthernet(w.rest)
	w.rest = rest
	return err == nil && w.etherType(h.Type)
}

func (w *walker) etherType(t wire.EtherType) bool {
	switch t {
	case wire.TypeIPv4:
		w.next = (*walker).ipv4
	case wire.TypeIPv6:
		w.next = (*walker).ipv6
	case wire.TypeMPLS:
		w.next = (*walker).mpls
	case wire.TypeTEB:
		w.next = (*walker).ethernet
	case wire.TypeARP:
		return w.skip(wire.ARPLen)
	}
	return true
}

// skip skips a header that does not contain the type of its payload.
func (w *walker) skip(n int) bool {
	if len(w.rest) < n {
		return false
	}
	w.rest = w.rest[n:]
	return true
}

// mpls parses one label of an MPLS stack. The payload after the last label has no type; an IP packet is recognised by
// its version field.
func (w *walker) mpls() bool {
	h, rest, err := wire.ParseMPLS(w.rest)
	if err != nil || len(rest) == 0 {
		return false
	}
	w.rest = rest
	if !h.BottomOfStack {
		w.next = (*walker).mpls
		return true
	}
	return w.ip()
}

func (w *walker) ipv4() bool {
	h, rest, err := wire.ParseIPv4(w.rest)
	w.rest = rest
	return err == nil && !h.IsFragment() && w.protocol(h.Protocol)
}

func (w *walker) ipv6() bool {
	h, rest, err := wire.ParseIPv6(w.rest)
	w.rest = rest
	return err == nil && w.protocol(h.NextHeader)
}

// protocol selects the parser for the payload of an IP packet with protocol p. If p is unknown, rest is the payload of
// the frame.
func (w *walker) protocol(p wire.Protocol) bool {
	const ipip, ipv6ip, sctpProtocol = 4, 41, 132 // RFC 2003, RFC 2473, RFC 9260
	switch p {
	case wire.ProtoUDP:
		w.next = (*walker).udp
	case wire.ProtoTCP:
		w.next = (*walker).tcp
	case wire.ProtoICMP, wire.ProtoICMPv6:
		w.next = (*walker).icmp
	case wire.ProtoGRE:
		w.next = (*walker).gre
	case sctpProtocol:
		w.next = (*walker).sctp
	case ipip:
		w.next = (*walker).ipv4
	case ipv6ip:
		w.next = (*walker).ipv6
	}
	return true
}

func (w *walker) udp() bool {
	h, rest, err := wire.ParseUDP(w.rest)
	w.rest = rest
	switch {
	case err != nil:
	case h.DstPort == wire.VXLANPort:
		w.next = (*walker).vxlan
	case h.DstPort == genevePort:
		w.next = (*walker).geneve
	case h.DstPort == gtpuPort:
		w.next = (*walker).gtpu
	case h.DstPort == sctpPort:
		w.next = (*walker).sctp
	}
	return err == nil
}

// sctp parses the common header of SCTP, and the header of the DATA chunk after it (RFC 9260 section 3).
func (w *walker) sctp() bool {
	const data = 0
	if !w.skip(sctpLen) {
		return false
	}
	if len(w.rest) > 0 && w.rest[0] == data {
		return w.skip(sctpDataLen)
	}
	return true
}

func (w *walker) vxlan() bool {
	_, rest, err := wire.ParseVXLAN(w.rest)
	w.rest, w.next = rest, (*walker).ethernet
	return err == nil
}

// geneve parses a Geneve header with its options (RFC 8926 section 3.4).
func (w *walker) geneve() bool {
	if len(w.rest) < geneveLen {
		return false
	}
	options, t := 4*int(w.rest[0]&0x3f), binary.BigEndian.Uint16(w.rest[2:])
	return w.skip(geneveLen+options) && w.etherType(wire.EtherType(t))
}

// gtpu parses the header of a GTP-U user packet (3GPP TS 29.281 section 5.1). If any of the flags E, S and PN is set,
// four more bytes follow. The flag E also announces extension headers, which are not parsed.
func (w *walker) gtpu() bool {
	const optional, more, packet = 7, 4, 0xff
	if len(w.rest) < gtpuLen || w.rest[1] != packet {
		return false
	}
	n := gtpuLen
	if w.rest[0]&optional != 0 {
		n += more
	}
	return w.skip(n) && w.ip()
}

// ip parses an IP packet, whose version only the version field gives.
func (w *walker) ip() bool {
	if len(w.rest) == 0 {
		return false
	}
	switch w.rest[0] >> 4 {
	case 4:
		w.next = (*walker).ipv4
	case 6:
		w.next = (*walker).ipv6
	}
	return true
}

func (w *walker) gre() bool {
	h, rest, err := wire.ParseGRE(w.rest)
	w.rest = rest
	return err == nil && w.etherType(h.Type)
}

func (w *walker) tcp() bool {
	_, rest, err := wire.ParseTCP(w.rest)
	w.rest = rest
	return err == nil
}

func (w *walker) icmp() bool {
	return w.skip(wire.ICMPv4Len)
}
