package tcp

// The program's calls: SEND, RECEIVE, CLOSE and ABORT (RFC 9293 sections 3.10.2 to 3.10.5), and the socket
// options.

import (
	"math"
	"time"
)

// Written reports that the program has written, so that Outgoing.End has advanced. It is ignored after CloseWrite.
func (c *Conn) Written(now Time) {
	if c.snd.fin || c.state == Closed {
		return
	}
	c.checkLimited()
	c.snd.end = c.out.End()
}

// CloseWrite ends the outgoing stream after the bytes written so far (shutdown(2)). A FIN follows them.
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

// Close reports that the program has closed the connection. If data is unread or arrives later, the peer
// receives a reset, which shows that its data was lost (RFC 9293 section 3.6.1, RFC 2525 section 2.17).
// Otherwise the connection ends in order.
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

// Abort ends the connection at once. The peer receives a reset if it may have a record of the connection.
func (c *Conn) Abort(now Time) {
	switch c.state {
	case SynSent, Closing, LastAck, TimeWait:
		c.close(aborted)
	default:
		c.reset(aborted)
	}
}

// SetNoDelay switches Nagle's algorithm off or on (TCP_NODELAY). Switching it off sends all data held back so
// far, including data held back by SetCork or SetMore.
func (c *Conn) SetNoDelay(now Time, on bool) {
	if on && !c.snd.noDelay && c.unsent() > 0 {
		c.snd.force = true
	}
	c.snd.noDelay = on
}

// SetCork holds back data that does not fill a segment, for at most 200 ms (TCP_CORK).
func (c *Conn) SetCork(now Time, on bool) { c.snd.cork = on }

// CorkedTo returns the offset that the written data must reach before more of it can be sent, if SetCork holds data back now.
// Otherwise it returns 0.
func (c *Conn) CorkedTo() uint64 {
	if !c.snd.cork || c.unsent() == 0 {
		return 0
	}
	return c.offset(c.snd.nxt) + uint64(min(c.segment(), int(c.snd.maxWnd/2)))
}

// SetMore declares that the program will write more. Data that does not fill a segment then waits, for at
// most 200 ms (MSG_MORE).
func (c *Conn) SetMore(now Time, on bool) { c.snd.more = on }

// Congestion returns the name of the congestion control. It returns "" before the connection is established
// and after it has ended.
func (c *Conn) Congestion() string {
	if c.cc == nil {
		return ""
	}
	return c.cc.Name()
}

// SetFinWait2 sets how long the connection waits for the peer's FIN after Close (TCP_LINGER2). d is rounded
// up to whole seconds and limited to 32767 s. 0 restores Config.FinWait2. With a negative d, the connection
// is reset instead.
func (c *Conn) SetFinWait2(now Time, d time.Duration) {
	c.finWait2 = int16(min(max((d+time.Second-1)/time.Second, 0), math.MaxInt16))
	if d < 0 {
		c.finWait2 = -1
	}
}

// SetUserTimeout bounds the time that sent data may stay unacknowledged (TCP_USER_TIMEOUT). 0 restores the
// limit on the number of retransmissions.
func (c *Conn) SetUserTimeout(now Time, d time.Duration) { c.snd.userTimeout = lasting(d) }
