package tcp

// The congestion state of the sender, evaluated at each acknowledgment:
//
//	Open      no loss is known; the window grows
//	CWR       the network marked segments (ECN): the window shrinks
//	Recovery  acknowledgments revealed a loss (RFC 6675, RFC 6582): lost ranges
//	          are retransmitted while the window shrinks (prr.go)
//	Loss      a retransmission timeout (rto.go): slow start over the lost data
//
// All states but Open last until everything that was in flight when they began is acknowledged (the recovery
// point). Linux has a fifth state, Disorder: Open with duplicates not yet taken for loss. Only Info reports
// it here.
//
// A state also ends when it turns out to be spurious (undo.go, frto.go).

// recovery is the state of loss recovery.
type recovery struct {
	state   CAState
	frto    frtoStep
	partial bool   // used without SACK: a partial acknowledgment has arrived
	point   Seq    // SND.NXT when the state began (RecoveryPoint of RFC 6675, recover of RFC 6582)
	dups    uint32 // used without SACK: number of duplicate acknowledgments
	prr     prr

	// The fields below are used to undo a reduction of the window (undo.go).
	undoable         bool
	answered         bool   // new data has been acknowledged since the reduction
	stamped          bool   // stamp is set
	stamp            uint32 // our timestamp clock at the time of the first retransmission
	marker, expires  Seq    // SND.UNA when the state began, and SND.NXT when it ended
	resent, doubled  uint32 // bytes that were retransmitted and in flight when the window was reduced, or retransmitted since; and the part of them that the peer has reported as duplicates
	size0, threshold uint32 // congestion window and threshold before the reduction
}

// react evaluates an acknowledgment.
func (c *Conn) react(ev *arrival) {
	before := c.rec.state
	c.probeAcked(ev)
	if c.ecn.on {
		c.reactECN(ev)
	}
	if c.rec.state != CAOpen && ev.acked > 0 && c.rec.point.LessEq(c.snd.una) {
		c.recovered(ev)
	}
	switch c.rec.state {
	case CARecovery:
		c.reactRecovery(ev)
	case CALoss:
		c.reactLoss(ev)
	default:
		c.reactOpen(ev)
	}
	switch {
	case c.rate != nil:
		c.sampled(ev)
	case c.rec.state == CARecovery || c.rec.state == CACWR:
		c.prrAcked(ev)
	case before == CAOpen || before == CALoss:
		c.grow(ev)
	}
	if c.rec.state == CAOpen || c.rec.state == CARecovery {
		c.armProbe(ev.now)
	}
}

// reactOpen looks for the first sign of loss.
func (c *Conn) reactOpen(ev *arrival) {
	if c.rec.undoable && c.undoLate(ev) {
		return
	}
	switch {
	case c.rcv.sackOK:
		if c.sent.sacked > 0 {
			ev.lost = c.detectLoss(ev.now)
		} else if c.timers.armed(timerReorder) {
			c.timers.stop(timerReorder)
		}
	case ev.acked > 0:
		c.rec.dups = 0
	case ev.dup:
		c.duplicate(ev)
		// RFC 6582 section 3.2 step 2: ignore duplicates that were caused by the retransmissions of the last recovery.
		if ev.deliver > 0 && c.rec.dups == dupThresh && c.rec.point.Less(c.snd.una) {
			c.markFirstLost(ev)
		}
	}
	if ev.lost > 0 && !c.mtuProbeLost(ev.now) {
		c.enterRecovery(ev)
	}
}

// enterRecovery begins fast recovery. It does not reduce the window again if ECN has just done so.
func (c *Conn) enterRecovery(ev *arrival) {
	c.count(FastRecoveries)
	c.cancelProbe()
	c.dropMTUProbe()
	if c.rec.state != CACWR {
		c.remember()
		c.reduce(ev)
	}
	c.rec.state = CARecovery
	c.rec.point = c.snd.nxt
	c.rec.frto = frtoOff
	c.rec.partial = false
	c.prrBegin(ev)
	if c.rate == nil {
		// the window allows one segment more than the data in flight, to retransmit at once
		c.window.Size = uint32(c.pipe()) + c.window.MSS
	}
}

// reduce lowers the threshold to the value chosen by the congestion control. With ECN, the peer is notified
// whatever the reason (RFC 3168 section 6.1.2), so that it does not keep echoing an earlier mark.
func (c *Conn) reduce(ev *arrival) {
	c.ecn.cwr = c.ecn.on
	c.window.Threshold = c.cc.Reduce(&c.window, ev.now, uint32(ev.before))
	if c.rate == nil {
		c.window.Rate = 0 // during recovery, prr.go decides when to send, and not the pacing rate
	}
}

// reactRecovery processes an acknowledgment during fast recovery.
func (c *Conn) reactRecovery(ev *arrival) {
	if c.spurious(ev) {
		c.undo(ev.now)
		return
	}
	switch {
	case c.rcv.sackOK:
		ev.lost = c.detectLoss(ev.now)
	case ev.acked > 0:
		// A partial acknowledgment shows that the next hole begins at SND.UNA (RFC 6582 section 3.2 step 3). One of the
		// acknowledged segments was the retransmitted one. Each of the others has caused a duplicate acknowledgment before.
		c.rec.partial = true
		c.lowerDups(ev)
		c.markFirstLost(ev)
	case ev.dup:
		c.duplicate(ev)
	}
}

// recovered ends a state when its recovery point has been acknowledged.
func (c *Conn) recovered(ev *arrival) {
	was := c.rec.state
	if was != CACWR && c.spurious(ev) {
		c.undo(ev.now)
		return
	}
	switch {
	case c.rate != nil:
		c.rate.model.Recovered(&c.window, ev.now)
	case was == CARecovery || was == CACWR:
		c.window.Size = c.window.Threshold
	}
	if was != CACWR {
		c.rackRecovered()
	}
	c.open()
}

// open returns to the Open state.
func (c *Conn) open() {
	c.rec.state = CAOpen
	c.rec.dups = 0
	c.rec.frto = frtoOff
	c.rec.expires = c.snd.nxt
}

// grow lets the congestion control enlarge the window if the window was in use.
func (c *Conn) grow(ev *arrival) {
	if ev.acked != 0 {
		c.repace()
	}
	if ev.acked == 0 || !c.windowUsed() && c.rec.state != CALoss {
		return
	}
	a := Ack{
		Now: ev.now, Bytes: uint32(ev.deliver), InFlight: uint32(ev.before), Frame: c.snd.burst,
		SRTT: c.rtt.srtt, Una: c.snd.una, Nxt: c.snd.nxt,
	}
	if !ev.resent && ev.newest >= 0 {
		a.RTT = max(ev.now-ev.newest, 1)
	}
	c.cc.Acked(&c.window, a)
	c.window.Size = min(c.window.Size, maxWindow)
}

// windowUsed reports whether the window limited sending. In slow start the window may be twice the amount
// used, so that it can double within a round trip (RFC 9438 section 5.8; RFC 7661 gives the reasons).
func (c *Conn) windowUsed() bool {
	if c.snd.limited {
		return true
	}
	return c.window.Size < c.window.Threshold && c.window.Size < 2*c.snd.maxFlight
}

// validate records how much of the window was used, over one window of data.
func (c *Conn) validate(limited bool) {
	n := uint32(c.flight())
	if c.snd.usage.LessEq(c.snd.una) || n > c.snd.maxFlight || limited && !c.snd.limited {
		c.snd.usage, c.snd.maxFlight, c.snd.limited = c.snd.nxt, n, limited
	}
}
