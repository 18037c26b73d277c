package ip

import "loam/wire"

// The chain of headers of an IPv6 packet, processed as by its destination (RFC 8200 section 4): one after the
// other, up to the first that is not an extension header, or until an error.
//
// A routing header is rejected if it names further nodes to visit: type 0 is obsolete (RFC 5095), and other
// types are not supported. A fragment that is a whole packet is processed as such (RFC 6946).

// Action is the required handling of a packet.
type Action uint8

// Values of Action.
const (
	Deliver    Action = iota // deliver the packet: Chain.Protocol starts at Chain.Offset
	Reassemble               // reassemble the packet: Chain.Fragment is its fragment header, and the payload starts at Chain.Offset
	Discard                  // drop the packet silently
	Report                   // drop the packet, and send "parameter problem" with Chain.Code and Chain.Pointer
)

// Codes of "parameter problem" (RFC 4443 section 3.4, RFC 7112 section 6).
const (
	CodeHeaderField   = 0 // erroneous header field
	CodeNextHeader    = 1 // unrecognized next header type
	CodeOption        = 2 // unrecognized option
	CodeFirstFragment = 3 // the headers of the packet are not all in the first fragment
)

// Chain is the result of parsing the headers of a packet.
type Chain struct {
	Action   Action
	Protocol wire.Protocol
	Offset   int // offset in the packet of the data after the headers
	NextAt   int // offset in the packet of the next header field that contains Protocol
	Fragment wire.IPv6Fragment
	Code     uint8
	Pointer  int  // offset in the packet of the error, for "parameter problem"
	Always   bool // the error is also reported if the destination is a multicast address
}

// Offsets of two fields of the fixed header: next header, and payload length.
const nextHeaderAt, payloadLenAt = 6, 4

// ParseChain parses the headers of the packet b, whose fixed header is h. b must not include padding.
func ParseChain(h *wire.IPv6, b []byte) Chain {
	c := Chain{Protocol: h.NextHeader, Offset: wire.IPv6Len, NextAt: nextHeaderAt}
	for {
		switch c.Protocol {
		case wire.ProtoHopByHop:
			if c.Offset != wire.IPv6Len {
				return c.problem(CodeNextHeader, c.NextAt)
			}
			if !c.options(b, h) {
				return c
			}
		case wire.ProtoDestOptions:
			if !c.options(b, h) {
				return c
			}
		case wire.ProtoRouting:
			if !c.routing(b) {
				return c
			}
		case wire.ProtoIPv6Fragment:
			if !c.fragment(b) {
				return c
			}
		case wire.ProtoNoNext:
			c.Action = Discard
			return c
		default:
			return c
		}
	}
}

// problem ends the chain with an error that is reported to the sender. The parameter at
// is the offset of the error.
func (c Chain) problem(code uint8, at int) Chain {
	c.Action, c.Code, c.Pointer = Report, code, at
	return c
}

// step continues after a header of n bytes.
func (c *Chain) step(next wire.Protocol, n int) {
	c.Protocol, c.NextAt = next, c.Offset
	c.Offset += n
}

// options processes a hop-by-hop or destination options header. It returns false if the chain ends.
func (c *Chain) options(b []byte, h *wire.IPv6) bool {
	x, _, err := wire.ParseIPv6Ext(b[c.Offset:])
	if err != nil {
		c.Action = Discard
		return false
	}
	for at := 0; ; {
		o, next, ok, err := wire.NextIPv6Option(x.Data, at)
		if err != nil {
			c.Action = Discard
			return false
		}
		if !ok {
			break
		}
		if !c.option(&o, h) {
			return false
		}
		at = next
	}
	c.step(x.Next, x.Len())
	return true
}

// option processes an option as the two upper bits of its type require. All types except router alert are unknown (RFC
// 8200 section 4.2).
func (c *Chain) option(o *wire.IPv6Option, h *wire.IPv6) bool {
	const skip, discard, report, reportUnicast = 0, 1, 2, 3
	switch act := o.Type >> 6; {
	case act == skip || o.Type == wire.IPv6OptRouterAlert:
		return true
	case act == discard || act == reportUnicast && h.Dst.IsMulticast():
		c.Action = Discard
	default:
		*c = c.problem(CodeOption, c.Offset+2+o.At)
		c.Always = act == report
	}
	return false
}

// routing processes a routing header (RFC 8200 section 4.4). It returns false if the chain ends.
func (c *Chain) routing(b []byte) bool {
	x, _, err := wire.ParseIPv6Ext(b[c.Offset:])
	if err != nil {
		c.Action = Discard
		return false
	}
	if segmentsLeft := x.Data[1]; segmentsLeft != 0 {
		*c = c.problem(CodeHeaderField, c.Offset+2)
		return false
	}
	c.step(x.Next, x.Len())
	return true
}

// fragment processes a fragment header (RFC 8200 section 4.5). It returns false if the chain ends.
func (c *Chain) fragment(b []byte) bool {
	f, payload, err := wire.ParseIPv6Fragment(b[c.Offset:])
	switch {
	case err != nil:
		c.Action = Discard
		return false
	case f.Offset == 0 && !f.More:
		c.step(f.Next, wire.IPv6FragmentLen)
		return true
	case f.More && len(payload)%8 != 0:
		*c = c.problem(CodeHeaderField, payloadLenAt)
		return false
	case f.Offset+len(payload) > wire.MaxIPv6Payload:
		*c = c.problem(CodeHeaderField, c.Offset+2)
		return false
	case f.Offset == 0 && f.Next == wire.ProtoHopByHop: // a hop-by-hop header must be the first header of a packet
		*c = c.problem(CodeNextHeader, c.Offset)
		return false
	case f.Offset == 0 && !complete(f.Next, payload):
		*c = c.problem(CodeFirstFragment, 0)
		return false
	}
	c.Action, c.Fragment = Reassemble, f
	c.Offset += wire.IPv6FragmentLen
	return false
}

// complete reports whether a first fragment contains all headers, including the transport header (RFC 7112
// section 5).
func complete(next wire.Protocol, payload []byte) bool {
	proto, rest, _, ok := wire.SkipIPv6Ext(next, payload)
	switch proto {
	case wire.ProtoTCP:
		return ok && len(rest) >= wire.TCPMinLen
	case wire.ProtoUDP, wire.ProtoUDPLite:
		return ok && len(rest) >= wire.UDPLen
	case wire.ProtoICMPv6:
		return ok && len(rest) >= wire.ICMPv6Len
	}
	return ok
}
