package tcp

import "time"

// Deadlines of a connection. The owner arms one timer, for the earliest deadline.

// timer identifies one deadline of a connection. Timers that expire together run in this order.
type timer uint8

const (
	timerProbe   timer = iota // a tail loss probe is due (probe.go); runs before timerRTO, which it postpones
	timerRTO                  // the oldest data was not acknowledged in time (rto.go)
	timerReorder              // data that was overtaken by later data is considered lost (rack.go)
	timerPersist              // data has been held back for too long, by the peer's window or by this side (persist.go)
	timerAck                  // a delayed acknowledgment is due (delayedack.go)
	timerLife                 // keep-alive (keepalive.go), or the end of FIN-WAIT-2 or TIME-WAIT (timewait.go)
	timerTrim                 // the connection is idle: memory can be freed
	timerPace                 // pacing allows more data to be sent (pacing.go)
	numTimers
)

// timers holds the deadlines; Never means not armed.
type timers [numTimers]Time

func (t *timers) stopAll() {
	for i := range t {
		t[i] = Never
	}
}

func (t *timers) armed(i timer) bool { return t[i] != Never }

func (t *timers) stop(i timer) { t[i] = Never }

// trimAfter is the idle time after which memory left over from a busy period is freed.
const trimAfter = 10 * time.Second

// Deadline returns the time at which the owner must call Tick, or Never.
func (c *Conn) Deadline() Time {
	t := c.timers[0]
	for _, at := range c.timers[1:] {
		t = min(t, at)
	}
	return t
}

// Tick runs the actions of all deadlines that have passed.
func (c *Conn) Tick(now Time) {
	c.checkLimited()
	for i := range numTimers {
		if c.timers[i] <= now {
			c.timers.stop(i)
			c.expired(now, i)
		}
	}
}

// expired runs the action of timer i.
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
	case timerPace:
		c.releasePace(now)
	}
}

// idle arms the timer timerTrim if the connection has memory that could be freed.
func (c *Conn) idle(now Time) {
	if len(c.sent.buf) > smallSent || c.rcv.behind != nil {
		c.timers[timerTrim] = now + trimAfter
	}
}

// smallSent is the size of a ring of sent ranges that trim need not free.
const smallSent = 4

// trim frees unused memory. If some memory is still in use, it arms timerTrim again.
func (c *Conn) trim(now Time) {
	if c.sent.len() == 0 {
		c.sent.release()
	}
	if !c.rcv.gaps() {
		c.rcv.behind = nil
	}
	c.idle(now)
}
