package tcp

// Explicit congestion notification (RFC 3168 section 6.1): a router marks
// segments instead of dropping them, the receiver echoes the mark until the
// sender says that it has slowed down. Only new data is sent ECN-capable, no
// retransmission and no bare acknowledgment (sections 6.1.4 and 6.1.5).

import "loam/wire"

type ecn struct {
	on    bool // both sides agreed
	asked bool // our SYN asks for it
	echo  bool // set ECE until the peer has reduced its window
	cwr   bool // say with the next new data that ours is reduced
}

// ask has our SYN ask for it.
func (e *ecn) ask(mode ECNMode) { e.asked = mode == ECNAsk }

// answer decides on a SYN that may ask for it.
func (e *ecn) answer(mode ECNMode, syn wire.TCPFlags) {
	e.asked = false
	e.on = mode != ECNOff && syn.Has(wire.ECE|wire.CWR)
}

// agreed takes the answer to a SYN that may have asked for it. Both bits set are
// an echo by something that knows nothing of ECN (section 6.1.1).
func (e *ecn) agreed(synAck wire.TCPFlags) {
	e.on = e.asked && synAck&(wire.ECE|wire.CWR) == wire.ECE
}

// synFlags are the bits of our SYN or SYN-ACK.
func (e *ecn) synFlags(answer bool) wire.TCPFlags {
	switch {
	case answer && e.on:
		return wire.ECE
	case !answer && e.asked:
		return wire.ECE | wire.CWR
	}
	return 0
}

// mark makes a segment with new data ECN-capable.
func (e *ecn) mark(out *Out) {
	if !e.on || out.Len == 0 {
		return
	}
	out.ECT = true
	if e.cwr {
		out.Flags |= wire.CWR
		e.cwr = false
	}
}

// receivedCE takes what a segment with data says about congestion on its way.
func (c *Conn) receivedCE(seg *Segment) {
	if seg.Flags.Has(wire.CWR) {
		c.ecn.echo = false
	}
	if seg.CE {
		if !c.ecn.echo {
			c.todo |= todoAck
		}
		c.ecn.echo = true
	}
}

// reactECN reduces the window once per window of data if the peer echoes a mark.
func (c *Conn) reactECN(ev *arrival) {
	if c.rec.state != CAOpen || !ev.seg.Flags.Has(wire.ECE) {
		return
	}
	c.cancelProbe()
	c.rec.undoable = false
	c.reduce(ev)
	c.rec.state = CACWR
	c.rec.point = c.snd.nxt
	c.prrBegin(ev)
}
