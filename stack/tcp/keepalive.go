package tcp

// Keep-alive (RFC 9293 section 3.8.4), off unless asked for: an idle peer is sent
// an old sequence number, which it must answer.

import "time"

type keepAlive struct {
	heard    Time   // when the peer was last heard of
	idle     millis // 0: off
	interval millis
	count    uint8
	probes   uint8 // unanswered
}

// SetKeepAlive probes the peer when nothing has come from it for idle; idle 0
// stops it. interval and count 0 mean the defaults.
func (c *Conn) SetKeepAlive(now Time, idle, interval time.Duration, count int) {
	c.keep.idle = lasting(idle)
	c.keep.interval = lasting(duration(interval, duration(c.cfg.KeepAliveInterval, DefaultKeepAliveInterval)))
	c.keep.count = uint8(min(number(count, number(c.cfg.KeepAliveCount, DefaultKeepAliveCount)), 255))
	c.keep.probes = 0
	c.keepAliveStart(now)
}

// keepAliveStart arms the timer where keep-alive applies: until the connection
// only waits for its end.
func (c *Conn) keepAliveStart(now Time) {
	if c.ending() {
		return
	}
	c.timers.stop(timerLife)
	if c.keep.idle > 0 && c.state.synchronized() {
		c.timers[timerLife] = max(now, c.keep.heard+c.keep.idle.duration())
	}
}

// keepAliveTimeout runs when the peer may have been idle too long. The timer is
// not touched while segments arrive; it looks here when the peer was last heard
// of. Data in flight, or waiting for the window, has timers of its own.
func (c *Conn) keepAliveTimeout(now Time) {
	k := &c.keep
	quiet := now - k.heard
	switch {
	case c.sent.len() > 0 || c.unsent() > 0:
		c.timers[timerLife] = now + k.idle.duration()
		return
	case quiet < k.idle.duration():
		c.timers[timerLife] = k.heard + k.idle.duration()
		return
	case c.snd.userTimeout > 0 && k.probes > 0 && quiet >= c.snd.userTimeout.duration(),
		c.snd.userTimeout == 0 && k.probes >= k.count:
		c.reset(c.failure())
		return
	}
	k.probes++
	c.todo |= todoPoke
	c.timers[timerLife] = now + k.interval.duration()
}
