package tcp

import "loam/wire"

// ResetFor fills out the reset that answers a segment without a connection (RFC 9293 section 3.10.7.1). It
// returns false if seg is itself a reset, which is never answered.
func ResetFor(seg *Segment, out *wire.TCP) bool {
	if seg.Flags.Has(wire.RST) {
		return false
	}
	*out = wire.TCP{SrcPort: seg.DstPort, DstPort: seg.SrcPort, Flags: wire.RST}
	if seg.Flags.Has(wire.ACK) {
		out.Seq = seg.Ack
	} else {
		out.Flags |= wire.ACK
		out.Ack = uint32(Seq(seg.Seq).Add(seg.len()))
	}
	return true
}
