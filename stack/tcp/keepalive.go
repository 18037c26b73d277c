package tcp

// Keep-alive (RFC 9293 section 3.8.4), off by default: an idle peer receives an old sequence number, which it
// must acknowledge.

import "time"

// keepAlive holds the keep-alive settings and state of one connection.
type keepAlive struct {
	received Time   // time at which the last segment of the peer arrived
	idle     millis // idle time before the first probe; 0: keep-alive is off
	interval millis
	count    uint8
	probes   uint8 // number of probes without an answer
}

// SetKeepAlive makes the connection probe the peer after it has been silent for the
// duration idle. A duration of 0 stops the probing. An interval or count of 0 means the
// default.
func (c *Conn) SetKeepAlive(now Time, idle, interval time.Duration, count int) {
	c.keep.idle = lasting(idle)
	c.keep.interval = lasting(duration(interval, duration(c.cfg.KeepAliveInterval, DefaultKeepAliveInterval)))
	c.keep.count = uint8(min(number(count, number(c.cfg.KeepAliveCount, DefaultKeepAliveCount)), 255))
	c.keep.probes = 0
	c.keepAliveStart(now)
}

// keepAliveStart arms the timer if keep-alive applies to the state: to all synchronized states except those that only wait
// for the end of the connection.
func (c *Conn) keepAliveStart(now Time) {
	if c.ending() {
		return
	}
	c.timers.stop(timerLife)
	if c.keep.idle > 0 && c.state.synchronized() {
		c.timers[timerLife] = max(now, c.keep.received+c.keep.idle.duration())
	}
}

// keepAliveTimeout runs when the peer may have been silent for too long. Arriving segments do not restart the timer, so this
// function checks the time of the last one. If data is in flight or waits for the window, other timers detect a dead peer.
func (c *Conn) keepAliveTimeout(now Time) {
	k := &c.keep
	quiet := now - k.received
	switch {
	case c.sent.len() > 0 || c.unsent() > 0:
		c.timers[timerLife] = now + k.idle.duration()
		return
	case quiet < k.idle.duration():
		c.timers[timerLife] = k.received + k.idle.duration()
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
