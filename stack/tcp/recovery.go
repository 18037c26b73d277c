package tcp

// What state the sender is in, judged at each acknowledgment.
//
//	Open      nothing is known to be lost; the window grows
//	CWR       the network marked segments (ECN): the window comes down
//	Recovery  loss was found by acknowledgments (RFC 6675, RFC 6582): lost ranges
//	          are sent again while the window comes down (prr.go)
//	Loss      a retransmission timeout (rto.go): slow start over what was lost
//
// All but Open last until everything that was in flight when they began is
// acknowledged (the recovery point). Linux tells a fifth one, Disorder: Open with
// duplicates that are not yet taken for loss.
//
// A state is also left when it turns out to have begun for nothing (undo.go,
// frto.go).

// recovery is the state of loss recovery.
type recovery struct {
	state   CAState
	frto    frtoStep
	partial bool   // a partial acknowledgment has come, without SACK
	point   Seq    // SND.NXT when the state began, RecoveryPoint of RFC 6675, recover of RFC 6582
	dups    uint32 // duplicate acknowledgments, without SACK
	prr     prr

	// What may be undone (undo.go).
	undoable         bool
	answered         bool   // new data was acknowledged since
	stamped          bool   // stamp is set
	stamp            uint32 // our timestamp clock when something was first sent again
	marker, expires  Seq    // SND.UNA when the state began, SND.NXT when it ended
	resent, doubled  uint32 // bytes sent again since, and bytes of them reported to be duplicates
	size0, threshold uint32 // the window before
}

// noThreshold is a slow start threshold that no window reaches.
const noThreshold = 1<<31 - 1

// react judges an acknowledgment.
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
		// RFC 6582 section 3.2 step 2: not for duplicates that the last
		// recovery itself has caused.
		if ev.deliver > 0 && c.rec.dups == dupThresh && c.rec.point.Less(c.snd.una) {
			c.markFirstLost(ev)
		}
	}
	if ev.lost > 0 {
		c.enterRecovery(ev)
	}
}

// enterRecovery begins fast recovery. The window is reduced once, not again if
// ECN has just done so.
func (c *Conn) enterRecovery(ev *arrival) {
	c.count(FastRecoveries)
	c.cancelProbe()
	if c.rec.state != CACWR {
		c.remember()
		c.reduce(ev)
	}
	c.rec.state = CARecovery
	c.rec.point = c.snd.nxt
	c.rec.frto = frtoOff
	c.rec.partial = false
	c.prrBegin(ev)
	c.window.Size = uint32(c.pipe()) + c.window.MSS // at least one is sent again
}

// reduce asks the congestion control for the threshold to come down to. With ECN
// the peer is told whatever the reason (RFC 3168 section 6.1.2), lest it goes on
// to echo a mark from before.
func (c *Conn) reduce(ev *arrival) {
	c.ecn.cwr = c.ecn.on
	c.window.Threshold = c.cc.Reduce(&c.window, ev.now, uint32(ev.before))
}

// reactRecovery goes on repairing.
func (c *Conn) reactRecovery(ev *arrival) {
	if c.spurious(ev) {
		c.undo(ev.now)
		return
	}
	switch {
	case c.rcv.sackOK:
		ev.lost = c.detectLoss(ev.now)
	case ev.acked > 0:
		// A partial acknowledgment: the next hole begins at SND.UNA (RFC 6582
		// section 3.2 step 3). One segment of what was acknowledged was the one
		// sent again; the others are what the duplicates stood for.
		c.rec.partial = true
		c.lowerDups(ev)
		c.markFirstLost(ev)
	case ev.dup:
		c.duplicate(ev)
	}
}

// recovered ends a state whose recovery point has been acknowledged.
func (c *Conn) recovered(ev *arrival) {
	was := c.rec.state
	if was != CACWR && c.spurious(ev) {
		c.undo(ev.now)
		return
	}
	if was == CARecovery || was == CACWR {
		c.window.Size = c.window.Threshold
	}
	if was != CACWR {
		c.rackRecovered()
	}
	c.open()
}

// open goes back to normal.
func (c *Conn) open() {
	c.rec.state = CAOpen
	c.rec.dups = 0
	c.rec.frto = frtoOff
	c.rec.expires = c.snd.nxt
}

// grow lets the congestion control enlarge the window if it was in use.
func (c *Conn) grow(ev *arrival) {
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

// windowUsed reports whether the window was what limited sending: in slow start
// it may be twice what is used, so that it can double within a round trip
// (RFC 9438 section 5.8, RFC 7661 on why).
func (c *Conn) windowUsed() bool {
	if c.snd.limited {
		return true
	}
	return c.window.Size < c.window.Threshold && c.window.Size < 2*c.snd.maxFlight
}

// validate notes how much of the window was used, over one window of data.
func (c *Conn) validate(limited bool) {
	n := uint32(c.flight())
	if c.snd.usage.LessEq(c.snd.una) || n > c.snd.maxFlight || limited && !c.snd.limited {
		c.snd.usage, c.snd.maxFlight, c.snd.limited = c.snd.nxt, n, limited
	}
}
