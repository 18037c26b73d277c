package tcp

// Was a retransmission timeout spurious? (F-RTO, RFC 5682.)
//
// After the timeout the first segment is sent again. When that is acknowledged,
// new data is sent instead of what else is in flight; if then data arrives that
// was never sent again, it had only been slow, and the timeout was spurious. If
// duplicates come, the loss was real, and all that was in flight is sent again.
//
// Timestamps tell the same one round trip earlier (undo.go); this is for paths
// without them.

type frtoStep uint8

const (
	frtoOff  frtoStep = iota // not, or no longer
	frtoWait                 // the first segment was sent again
	frtoNew                  // new data goes first
)

// reactLoss goes on after a timeout.
func (c *Conn) reactLoss(ev *arrival) {
	if c.spurious(ev) {
		c.undo(ev.now)
		return
	}
	if c.rec.frto != frtoOff && c.judgeTimeout(ev) {
		return
	}
	switch {
	case c.rcv.sackOK:
		if c.sent.sacked > 0 {
			ev.lost = c.detectLoss(ev.now)
		}
	case ev.acked > 0:
		c.rec.dups = 0
	case ev.dup && c.rec.point.Less(c.snd.nxt):
		c.duplicate(ev)
	}
}

// judgeTimeout is steps 2 and 3 of section 3.1. It reports whether the timeout
// was spurious or judgment is still out.
func (c *Conn) judgeTimeout(ev *arrival) bool {
	if ev.original && (c.rcv.sackOK || !ev.resent) && c.rec.undoable {
		c.undo(ev.now) // (3b)
		return true
	}
	if c.rec.point.Less(c.snd.nxt) {
		if ev.sacked || ev.dup {
			c.rec.frto = frtoOff // (3a)
		}
		return false
	}
	if ev.acked == 0 {
		return false
	}
	c.rec.point = c.snd.nxt
	c.rec.frto = frtoOff
	if c.unsent() > 0 && c.windowRoom() > 0 {
		c.rec.frto = frtoNew // (2b)
		return true
	}
	return false
}
