package tcp

// The program's side: SEND, RECEIVE, CLOSE and ABORT (RFC 9293 section 3.10.2 to
// 3.10.5), and what a program may set.

import (
	"math"
	"time"
)

// Written tells that Outgoing.End has moved.
func (c *Conn) Written(now Time) {
	if c.snd.fin || c.state == Closed {
		return
	}
	c.snd.end = c.out.End()
}

// CloseWrite ends the outgoing stream behind what has been written (shutdown).
func (c *Conn) CloseWrite(now Time) {
	if c.snd.fin || c.state == Closed {
		return
	}
	c.snd.end = c.out.End()
	c.snd.fin = true
	switch c.state {
	case Established:
		c.state = FinWait1
	case CloseWait:
		c.state = LastAck
	}
}

// Close tells that the program is gone. If data is unread or arrives later, the
// peer is told by a reset that it is lost (RFC 9293 section 3.6.1, RFC 2525
// section 2.17); otherwise the connection ends in order.
func (c *Conn) Close(now Time) {
	if c.gone || c.state == Closed {
		return
	}
	c.gone = true
	switch {
	case c.state == SynSent:
		c.close(finished)
		return
	case c.state == TimeWait:
		return
	case c.in.Consumed() < c.rcv.off || c.rcv.gaps():
		c.reset(aborted)
		return
	}
	c.CloseWrite(now)
	if c.state == FinWait2 {
		c.boundFinWait2(now)
	}
}

// Abort ends the connection at once; the peer gets a reset if it knows of it.
func (c *Conn) Abort(now Time) {
	switch c.state {
	case SynSent, Closing, LastAck, TimeWait:
		c.close(aborted)
	default:
		c.reset(aborted)
	}
}

// SetNoDelay switches Nagle's algorithm off (TCP_NODELAY). What was held back before goes,
// be it by SetCork or SetMore.
func (c *Conn) SetNoDelay(now Time, on bool) {
	if on && !c.snd.noDelay && c.unsent() > 0 {
		c.snd.force = true
	}
	c.snd.noDelay = on
}

// SetCork holds back what does not fill a segment, for at most 200 ms (TCP_CORK).
func (c *Conn) SetCork(now Time, on bool) { c.snd.cork = on }

// SetMore says whether more is to follow what has been written: what does not fill a segment
// waits for that, for at most 200 ms (MSG_MORE).
func (c *Conn) SetMore(now Time, on bool) { c.snd.more = on }

// SetFinWait2 says how long the connection waits for the peer's FIN once the program is gone, in whole
// seconds up to some hours; 0 goes back to Config.FinWait2, less than 0 has it be reset instead
// (TCP_LINGER2).
func (c *Conn) SetFinWait2(now Time, d time.Duration) {
	c.finWait2 = int16(min(max((d+time.Second-1)/time.Second, 0), math.MaxInt16))
	if d < 0 {
		c.finWait2 = -1
	}
}

// SetUserTimeout bounds the time that sent data may stay unacknowledged; 0 goes
// back to counting retransmissions (TCP_USER_TIMEOUT).
func (c *Conn) SetUserTimeout(now Time, d time.Duration) { c.snd.userTimeout = lasting(d) }
