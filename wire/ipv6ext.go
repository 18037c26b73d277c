package wire

import "encoding/binary"

// IPv6 extension headers (RFC 8200 section 4). The headers for hop-by-hop options, routing and destination options have
// a common format, which ParseIPv6Ext parses. The fragment header has a format of its own. This package only parses the
// headers; the receiver interprets them.

// Protocol numbers of the extension headers.
const (
	ProtoHopByHop     Protocol = 0
	ProtoRouting      Protocol = 43
	ProtoIPv6Fragment Protocol = 44
	ProtoNoNext       Protocol = 59 // no next header
	ProtoDestOptions  Protocol = 60
)

// IPv6ExtMinLen is the size of the shortest extension header in bytes. The length of an extension header is a multiple
// of it.
const IPv6ExtMinLen = 8

// IPv6FragmentLen is the size of a fragment header in bytes.
const IPv6FragmentLen = 8

// IPv6Ext is an extension header in the common format.
type IPv6Ext struct {
	Next Protocol // type of the next header
	Data []byte   // content after the first two octets: options, or a routing type and its data
}

// ParseIPv6Ext parses the header at the front of b. rest is the data after the header.
func ParseIPv6Ext(b []byte) (h IPv6Ext, rest []byte, err error) {
	if len(b) < IPv6ExtMinLen {
		return h, nil, ErrShort
	}
	n := IPv6ExtMinLen * (1 + int(b[1]))
	if n > len(b) {
		return h, nil, ErrLength
	}
	return IPv6Ext{Protocol(b[0]), b[2:n]}, b[n:], nil
}

// Len returns the size of the header in bytes.
func (h *IPv6Ext) Len() int { return 2 + len(h.Data) }

// Put writes the header into the first Len bytes of b. Len must be a multiple of IPv6ExtMinLen.
func (h *IPv6Ext) Put(b []byte) {
	b[0], b[1] = uint8(h.Next), uint8(h.Len()/IPv6ExtMinLen-1)
	copy(b[2:], h.Data)
}

// IPv6OptRouterAlert is the option that makes routers examine packets that are not addressed to them (RFC 2711). A host
// may ignore it. Its value is a two-byte number; MLD uses 0.
const IPv6OptRouterAlert = 5

// IPv6Option is an option of a hop-by-hop or destination options header.
type IPv6Option struct {
	Type uint8
	At   int // offset in the header's Data
	Data []byte
}

// NextIPv6Option returns the first option in a header's Data, beginning the search at the
// offset at, and the offset of the next option. It skips padding. ok is false at the end.
// It returns ErrOption for a malformed option.
func NextIPv6Option(data []byte, at int) (o IPv6Option, next int, ok bool, err error) {
	const pad1, padN = 0, 1
	for at < len(data) {
		if data[at] == pad1 {
			at++
			continue
		}
		if at+2 > len(data) || at+2+int(data[at+1]) > len(data) {
			return o, at, false, ErrOption
		}
		next = at + 2 + int(data[at+1])
		if data[at] != padN {
			return IPv6Option{data[at], at, data[at+2 : next]}, next, true, nil
		}
		at = next
	}
	return o, at, false, nil
}

// IPv6Fragment is a fragment header (RFC 8200 section 4.5).
type IPv6Fragment struct {
	Next   Protocol // in the first fragment: type of the header after the fragment header
	Offset int      // offset of the fragment in bytes, a multiple of 8, at most 65528
	More   bool
	ID     uint32
}

// ParseIPv6Fragment parses the fragment header at the front of b.
func ParseIPv6Fragment(b []byte) (h IPv6Fragment, payload []byte, err error) {
	if len(b) < IPv6FragmentLen {
		return h, nil, ErrShort
	}
	at := binary.BigEndian.Uint16(b[2:])
	return IPv6Fragment{Protocol(b[0]), int(at &^ 7), at&1 != 0, binary.BigEndian.Uint32(b[4:])}, b[IPv6FragmentLen:], nil
}

// Put writes the header into the first IPv6FragmentLen bytes of b.
func (h *IPv6Fragment) Put(b []byte) {
	_ = b[IPv6FragmentLen-1]
	at := uint16(h.Offset)
	if h.More {
		at |= 1
	}
	b[0], b[1] = uint8(h.Next), 0
	binary.BigEndian.PutUint16(b[2:], at)
	binary.BigEndian.PutUint32(b[4:], h.ID)
}

// SkipIPv6Ext returns the protocol after the extension headers at the front of b. The parameter next is the
// type of the first header. The function is for callers that only classify a packet and need not act on the
// headers. later reports that the packet is a fragment other than the first, so that its protocol is unknown.
// ok is false if b ends too early.
func SkipIPv6Ext(next Protocol, b []byte) (proto Protocol, rest []byte, later, ok bool) {
	for {
		switch next {
		case ProtoHopByHop, ProtoRouting, ProtoDestOptions:
			h, rest, err := ParseIPv6Ext(b)
			if err != nil {
				return next, nil, false, false
			}
			next, b = h.Next, rest
		case ProtoIPv6Fragment:
			h, rest, err := ParseIPv6Fragment(b)
			if err != nil || h.Offset != 0 {
				return h.Next, rest, true, err == nil
			}
			next, b = h.Next, rest
		default:
			return next, b, false, true
		}
	}
}
