package tcp

// Explicit congestion notification (RFC 3168 section 6.1). A router marks segments instead of dropping them,
// and the receiver echoes the mark until the sender reports that it has slowed down. Only new data is sent
// ECN-capable; retransmissions and bare acknowledgments are not (sections 6.1.4 and 6.1.5).

import "loam/wire"

// ecn is the state of ECN for one connection.
type ecn struct {
	on    bool // both sides have agreed to use ECN
	asked bool // our SYN requested ECN
	echo  bool // segments have ECE until the peer has reduced its window
	cwr   bool // the next segment with new data has CWR: our window was reduced
}

// ask decides whether our SYN requests ECN.
func (e *ecn) ask(mode ECNMode) { e.asked = mode == ECNAsk }

// answer decides, for a SYN of the peer, whether the connection uses ECN.
func (e *ecn) answer(mode ECNMode, syn wire.TCPFlags) {
	e.asked = false
	e.on = mode != ECNOff && syn.Has(wire.ECE|wire.CWR)
}

// agreed processes the ECN bits of the reply to our SYN. If both bits are set, a host or device without ECN support has
// copied them, and ECN is not used (RFC 3168 section 6.1.1).
func (e *ecn) agreed(synAck wire.TCPFlags) {
	e.on = e.asked && synAck&(wire.ECE|wire.CWR) == wire.ECE
}

// synFlags returns the ECN bits of our SYN or, if answer is set, of our SYN-ACK.
func (e *ecn) synFlags(answer bool) wire.TCPFlags {
	switch {
	case answer && e.on:
		return wire.ECE
	case !answer && e.asked:
		return wire.ECE | wire.CWR
	}
	return 0
}

// mark makes a segment with new data ECN-capable, and sets its CWR bit if that is due.
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

// receivedCE processes the congestion bits of a segment with data.
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

// reactECN reduces the window if the peer echoes a mark, once per window of data.
func (c *Conn) reactECN(ev *arrival) {
	if c.rec.state != CAOpen || !ev.seg.Flags.Has(wire.ECE) {
		return
	}
	c.cancelProbe()
	c.rec.undoable = false
	c.reduce(ev)
	if c.rate != nil {
		c.rate.model.Marked(&c.window, ev.now)
	}
	c.rec.state = CACWR
	c.rec.point = c.snd.nxt
	c.prrBegin(ev)
}
