package tcp

// Detection of spurious retransmission timeouts without timestamps (F-RTO, RFC 5682).
//
// After the timeout, the first segment is retransmitted. When it is acknowledged, new data is sent instead of the other data
// in flight. If data that was never retransmitted is then acknowledged, it was only delayed, and the timeout was spurious.
// If duplicates arrive, the loss was real, and all data in flight is retransmitted.
//
// Timestamps detect a spurious timeout one round trip earlier (undo.go).

// frtoStep is the step of F-RTO that a connection is in.
type frtoStep uint8

const (
	frtoOff  frtoStep = iota // inactive
	frtoWait                 // the first segment was retransmitted
	frtoNew                  // the first segment was acknowledged; new data is sent before other data is retransmitted
)

// reactLoss processes an acknowledgment after a timeout.
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

// judgeTimeout performs steps 2 and 3 of RFC 5682 section 3.1. It returns true if the timeout was spurious, or if this is
// not decided yet.
func (c *Conn) judgeTimeout(ev *arrival) bool {
	if ev.original && (c.rcv.sackOK || !ev.resent) && c.rec.undoable {
		c.undo(ev.now) // step (3b): the timeout was spurious
		return true
	}
	if c.rec.point.Less(c.snd.nxt) {
		if ev.sacked || ev.dup {
			c.rec.frto = frtoOff // step (3a): the loss was real
		}
		return false
	}
	if ev.acked == 0 {
		return false
	}
	c.rec.point = c.snd.nxt
	c.rec.frto = frtoOff
	if c.unsent() > 0 && c.windowRoom() > 0 {
		c.rec.frto = frtoNew // step (2b): new data is sent
		return true
	}
	return false
}
