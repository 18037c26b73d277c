package stack

import (
	"net/netip"

	"loam/link"
	"loam/wire"
)

// inputEchoReply delivers an echo reply to the socket with its identifier.
func (sh *shard) inputEchoReply(p *packet, id, seq uint16) {
	pinger := sh.pinger(p.ifc, id, p.dst)
	if pinger == nil {
		sh.tally.countBy(p.src, ICMPIgnored)
		return
	}
	message := p.payload()
	f := link.FrameOf(message)
	from, to := netip.AddrPortFrom(p.ifc.scoped(p.src), seq), netip.AddrPortFrom(p.ifc.scoped(p.dst), id)
	info := p.datagram(sh.now, from, to, len(message))
	switch {
	case !pinger.wants(f, &info):
		sh.tally.countBy(p.src, ICMPFiltered)
	case !pinger.take(f, info):
		sh.tally.countBy(p.src, ICMPOverflow)
	default:
		sh.tally.countBy(p.src, ICMPEchoReply)
		return
	}
	f.Free()
}

// isAt reports whether the socket is bound to an address, or to all addresses of its IP version.
func (p *Pinger) isAt(dst netip.Addr) bool {
	at := p.local.Addr()
	switch {
	case !at.IsUnspecified():
		return at.WithZone("") == dst
	case at.Is4():
		return dst.Is4()
	}
	return dst.Is6() || !p.v6Only
}

// pingError delivers an ICMP error to the Pinger that sent the request.
func (sh *shard) pingError(e *icmpError) bool {
	pinger := sh.pinger(nil, e.quote.EchoID, e.quote.Src)
	return pinger != nil && pinger.inputError(sh, e, e.quote.Header)
}

// pinger returns the socket with an identifier that receives packets to a destination address (at) on an interface, or
// nil. A nil interface means that the interface is unknown.
func (sh *shard) pinger(ifc *Interface, id uint16, at netip.Addr) *Pinger {
	for _, p := range sh.pings[id] {
		if p.isAt(at) && p.receivesOn(ifc) {
			return p
		}
	}
	return nil
}

// PingRequest is an echo request to an address that is not the stack's, passed to a forwarder.
type PingRequest struct {
	shard    *shard
	rest     uint32 // identifier and sequence number, as in the message
	tos      uint8
	from     *Interface
	Src, Dst netip.Addr // source and destination of the request
	Data     []byte
}

// Seq returns the sequence number.
func (r *PingRequest) Seq() uint16 { return uint16(r.rest) }

// Reply answers the request from Dst, with the data of the request.
func (r *PingRequest) Reply() {
	r.shard.post(func(sh *shard) {
		if r.Dst.Is6() {
			sh.sendEchoReply6(r.Dst, r.from.scoped(r.Src), r.tos, r.rest, r.Data)
			return
		}
		sh.sendEchoReply(r.Dst, r.Src, r.tos, wire.ICMPv4{Rest: r.rest}, r.Data)
	})
}

// forwardPing passes a request to the forwarder.
func (sh *shard) forwardPing(p *packet, rest uint32, data []byte) {
	handler := sh.stack.forwarder.Ping
	if handler == nil {
		sh.tally.countBy(p.src, ICMPIgnored)
		return
	}
	if !sh.beginForward() {
		return
	}
	r := &PingRequest{shard: sh, rest: rest, tos: p.tos, from: p.ifc, Src: p.src, Dst: p.dst, Data: append([]byte(nil), data...)}
	sh.stack.crew.Start(func() {
		defer sh.stack.forwards.Add(-1)
		handler(r)
	})
}
