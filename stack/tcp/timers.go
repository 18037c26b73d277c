package tcp

import "time"

// A connection's deadlines. The owner arms one timer for the earliest of them.

type timer uint8

const (
	timerProbe   timer = iota // tail loss probe (probe.go); runs first, to put off the next
	timerRTO                  // oldest data unacknowledged for too long (rto.go)
	timerReorder              // data overtaken by other data is taken for lost (rack.go)
	timerPersist              // data held back by the peer's window or by us (persist.go)
	timerAck                  // delayed acknowledgment (delayack.go)
	timerLife                 // peer silent (keepalive.go), or end of the wait for its FIN or of TIME-WAIT (timewait.go)
	timerTrim                 // connection idle: give memory back
	numTimers
)

// timers holds the deadlines; Never if not armed.
type timers [numTimers]Time

func (t *timers) stopAll() {
	for i := range t {
		t[i] = Never
	}
}

func (t *timers) armed(i timer) bool { return t[i] != Never }

func (t *timers) stop(i timer) { t[i] = Never }

// trimAfter is how long a connection must have been idle before the memory that
// a busy time left it with is given back.
const trimAfter = 10 * time.Second

// Deadline is the time at which Tick is to be called, or Never.
func (c *Conn) Deadline() Time {
	t := c.timers[0]
	for _, at := range c.timers[1:] {
		t = min(t, at)
	}
	return t
}

// Tick does what was to be done at deadlines that have passed.
func (c *Conn) Tick(now Time) {
	for i := range numTimers {
		if c.timers[i] <= now {
			c.timers.stop(i)
			c.expired(now, i)
		}
	}
}

func (c *Conn) expired(now Time, i timer) {
	switch i {
	case timerRTO:
		c.retransmitTimeout(now)
	case timerProbe:
		c.probeTimeout(now)
	case timerReorder:
		c.reorderTimeout(now)
	case timerPersist:
		c.persistTimeout(now)
	case timerAck:
		c.delayedAckTimeout()
	case timerLife:
		if c.ending() {
			c.close(finished)
		} else {
			c.keepAliveTimeout(now)
		}
	case timerTrim:
		c.trim(now)
	}
}

// idle arms the trim timer if there is something to give back.
func (c *Conn) idle(now Time) {
	if len(c.sent.buf) > smallSent || c.rcv.behind != nil {
		c.timers[timerTrim] = now + trimAfter
	}
}

// smallSent is a ring of sent ranges that is small enough to keep.
const smallSent = 4

// trim gives back what is not in use; for what is, it comes again.
func (c *Conn) trim(now Time) {
	if c.sent.len() == 0 {
		c.sent.release()
	}
	if !c.rcv.gaps() {
		c.rcv.behind = nil
	}
	c.idle(now)
}
