package sink

import (
	"encoding/binary"

	"loam/gen/measure"
	"loam/wire"
)

// maxDepth bounds how many headers are walked through: what a template may have.
const maxDepth = 16

// find looks for the tag of a frame: behind UDP, TCP or ICMP, over IPv4 or IPv6,
// with tags, labels and tunnels in between, or behind the last header that is known.
func find(frame []byte) (measure.Tag, bool) {
	// What nearly all frames are: UDP over IPv4 or IPv6, without tags.
	const udp4 = wire.EthernetLen + wire.IPv4MinLen + wire.UDPLen
	const udp6 = wire.EthernetLen + wire.IPv6Len + wire.UDPLen
	if len(frame) >= udp4+measure.TagLen {
		at := udp4
		if wire.EtherType(binary.BigEndian.Uint16(frame[12:])) == wire.TypeIPv6 {
			at = udp6
		}
		if len(frame) >= at+measure.TagLen {
			if tag, ok := measure.ParseTag(frame[at:]); ok {
				return tag, true
			}
		}
	}
	return measure.ParseTag(body(frame))
}

// walker goes through headers, from the outside in.
type walker struct {
	rest []byte
	next func(*walker) bool // nil: rest is a payload
}

// body is the payload of a frame behind the last header that is known, nil if it
// makes no sense.
func body(frame []byte) []byte {
	w := walker{frame, (*walker).ethernet}
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

// skip goes over a header that says nothing about what is behind it.
func (w *walker) skip(n int) bool {
	if len(w.rest) < n {
		return false
	}
	w.rest = w.rest[n:]
	return true
}

// mpls walks one label. What is behind the last is not numbered: an IP packet
// begins with its version.
func (w *walker) mpls() bool {
	h, rest, err := wire.ParseMPLS(w.rest)
	if err != nil || len(rest) == 0 {
		return false
	}
	w.rest = rest
	switch {
	case !h.BottomOfStack:
		w.next = (*walker).mpls
	case rest[0]>>4 == 4:
		w.next = (*walker).ipv4
	case rest[0]>>4 == 6:
		w.next = (*walker).ipv6
	}
	return true
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

func (w *walker) protocol(p wire.Protocol) bool {
	const ipip, ipv6ip = 4, 41 // RFC 2003, RFC 2473
	switch p {
	case wire.ProtoUDP:
		w.next = (*walker).udp
	case wire.ProtoTCP:
		w.next = (*walker).tcp
	case wire.ProtoICMP, wire.ProtoICMPv6:
		w.next = (*walker).icmp
	case wire.ProtoGRE:
		w.next = (*walker).gre
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
	if err == nil && h.DstPort == wire.VXLANPort {
		w.next = (*walker).vxlan
	}
	return err == nil
}

func (w *walker) vxlan() bool {
	_, rest, err := wire.ParseVXLAN(w.rest)
	w.rest, w.next = rest, (*walker).ethernet
	return err == nil
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
