package tcp

// The end of a connection: TIME-WAIT (RFC 9293 section 3.6.1, RFC 1337, RFC 6191) and the limit on
// FIN-WAIT-2.

import (
	"time"

	"loam/wire"
)

// ending reports whether the connection only waits for its end, in FIN-WAIT-2 after Close or in TIME-WAIT.
func (c *Conn) ending() bool { return c.state == TimeWait || c.state == FinWait2 && c.gone }

// enterTimeWait stays in TIME-WAIT for 2 MSL, so that a lost acknowledgment of the peer's FIN can be sent
// again and old segments expire.
func (c *Conn) enterTimeWait(now Time) {
	c.state = TimeWait
	c.releaseAll()
	c.restartTimeWait(now)
}

// Rest reports whether the connection is in TIME-WAIT and Close has been called. From then on, the Conn uses
// neither stream, and the owner may free the buffers.
func (c *Conn) Rest() bool {
	if c.state != TimeWait || !c.gone {
		return false
	}
	c.out, c.in = nil, nil
	return true
}

func (c *Conn) restartTimeWait(now Time) {
	c.timers[timerLife] = now + duration(c.cfg.TimeWait, DefaultTimeWait)
}

// boundFinWait2 limits the wait for the peer's FIN after Close. The limit is at least three and a half
// retransmission timeouts, so that a lost FIN can be repeated, as on Linux (tcp_fin_time).
func (c *Conn) boundFinWait2(now Time) {
	if c.finWait2 < 0 {
		c.reset(aborted)
		return
	}
	wait := Time(c.finWait2) * time.Second
	if wait == 0 {
		wait = duration(c.cfg.FinWait2, DefaultFinWait2)
	}
	c.timers[timerLife] = now + max(wait, c.rtt.rto*7/2)
}

// CanReuse reports whether syn may begin a new connection in place of this one in TIME-WAIT (RFC 9293 section
// 3.10.7.4, RFC 6191 section 2). If so, the owner drops this connection and passes syn to the listener.
func (c *Conn) CanReuse(now Time, syn *Segment) bool {
	if c.state != TimeWait || syn.Flags&(wire.SYN|wire.ACK|wire.RST|wire.FIN) != wire.SYN {
		return false
	}
	newer := c.rcv.nxt.Less(Seq(syn.Seq))
	if !syn.HasTimestamps || c.cfg.NoTimestamps {
		return newer
	}
	if !c.ts.on {
		return true // the peer's timestamps distinguish segments of the two connections
	}
	return Seq(c.ts.recent).Less(Seq(syn.TSVal)) || c.ts.recent == syn.TSVal && newer
}
