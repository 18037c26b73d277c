package tcp

// Pacing: the time at which the next data may leave (draft-ietf-ccwg-bbr section 5.6.2). Sent data moves the
// next departure by the time it takes at the pacing rate. Until then new data and retransmissions wait, and
// the departure time is one of the connection's deadlines. Acknowledgments, probes and resets never wait.
//
// The rate is the pacing rate of the congestion control, if it has one, limited by the program's rate
// (SO_MAX_PACING_RATE). Without either, pacing costs no more than a comparison.
//
// The owner's timer may be late: by a tick of its wheel, by a millisecond of the system's timer, or by more
// on a busy machine. Data held back by a late timer leaves at once, up to half of a round trip's data.
// Otherwise each late timer would lower the rate, since a quantum is a millisecond. The draft never lets
// next_send_time lie in the past, which requires a clock of nanoseconds. If a timer is later than that, the
// samples of the delivery rate count as limited by the program: they say nothing about the path.
//
// Rejected: credit for any time without sending, which would cause a burst after each pause of the program.

import (
	"time"

	"loam/stack/tcp/congestion"
)

// pacer is the state of a connection that paces or has paced.
type pacer struct {
	next   Time   // time at which more data may be sent (C.next_send_time)
	most   uint64 // limit set by SetMaxPacingRate in bytes per second; 0: no limit
	held   bool   // the time next has not been reached, so data must wait
	waited bool   // data was held back until the time next
}

const (
	leastSlack = 2 * time.Millisecond
	mostSlack  = 40 * time.Millisecond
)

// timeFor returns how long n bytes take at a rate, which must not be 0, at most maxPause.
func timeFor(n int, rate uint64) Time {
	return Time(min(uint64(n)*uint64(time.Second)/rate, uint64(maxPause)))
}

// maxPause is the longest time that one quantum delays the next, so that a rate close to 0 does not look like
// a dead peer.
const maxPause = time.Second

// pacingRate returns the rate to send at in bytes per second, 0 if nothing limits it.
func (c *Conn) pacingRate() uint64 {
	rate := c.window.Rate
	if c.pace != nil && c.pace.most > 0 && (rate == 0 || c.pace.most < rate) {
		rate = c.pace.most
	}
	return rate
}

// largestFrame returns the maximum payload of one frame: the owner's limit, or a quantum.
func (c *Conn) largestFrame() uint32 {
	if rate := c.pacingRate(); rate > 0 {
		return min(c.snd.burst, congestion.Quantum(rate, c.window.MSS))
	}
	return c.snd.burst
}

// departed records that n bytes are sent, and computes the next departure time.
func (c *Conn) departed(now Time, n int) {
	rate := c.pacingRate()
	if rate == 0 || n == 0 {
		return
	}
	if c.pace == nil {
		c.pace = &pacer{}
	}
	p := c.pace
	from := now
	if p.waited {
		from = max(p.next, now-min(max(leastSlack, c.rtt.srtt/2), mostSlack))
		if from > p.next && c.rate != nil { // the timer was later than the slack allows
			c.rate.limit(c.pipe())
		}
	}
	p.next = from + timeFor(n, rate)
	p.held = p.next > now
}

// pacingHeld reports whether data must wait for its departure time.
func (c *Conn) pacingHeld() bool { return c.pace != nil && c.pace.held }

// releasePace releases held data if its departure time has come.
func (c *Conn) releasePace(now Time) {
	if c.pacingHeld() {
		c.pace.held = c.pace.next > now
	}
}

// holdBack reports whether data waits only because of pacing. If so, it arms the timer for the next departure.
func (c *Conn) holdBack() bool {
	p := c.pace
	switch {
	case p == nil:
		return false
	case !p.held:
		p.waited = false
		return false
	}
	p.held = false
	a, _ := c.next()
	p.held = true
	if p.waited = a == again || a == fresh || a == mtuProbe; p.waited {
		c.timers[timerPace] = p.next
	}
	return p.waited
}

// repace adapts the rate of slow start to the round trip time, with each acknowledgment of new data. Otherwise, with a rate
// computed from a long round trip time, the sender would never use the window fully, and the window would never grow.
func (c *Conn) repace() {
	if c.window.Rate == 0 || c.rate != nil {
		return
	}
	if c.window.Rate = congestion.SlowStartRate(&c.window, c.rtt.srtt); c.pace != nil {
		c.pace.held = c.pace.held && c.pacingRate() > 0
	}
}

// SetMaxPacingRate limits the sending rate, in bytes per second; 0 removes the limit (SO_MAX_PACING_RATE).
func (c *Conn) SetMaxPacingRate(now Time, rate uint64) {
	switch {
	case c.pace != nil:
		c.pace.most = rate
		c.pace.held = c.pace.held && c.pacingRate() > 0
	case rate > 0:
		c.pace = &pacer{most: rate}
	}
}
