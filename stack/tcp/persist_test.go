package tcp

import (
	"testing"
	"time"
)

// The persist timer (RFC 9293 section 3.8.6.1).

func TestClosedWindowIsProbed(t *testing.T) {
	c := established(t, nil, "")
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001 win 0")
	c.write(500)
	c.wantIdle()
	rto := c.Info(c.now).RTO
	// "first after the window has been zero for the retransmission timeout, and exponentially increasing" (RFC 9293
	// SHLD-29, SHLD-30).
	for i := range 4 {
		c.wantTimer(rto << i)
		c.want("A 1000 ack 1")
		c.wantIdle()
		c.send("A 1 ack 1001 win 0")
		c.wantIdle()
	}
	c.send("A 1 ack 1001 win 800")
	c.want("PA 1001:1501 ack 1")
}

func TestClosedWindowIsProbedForEverWhileAnswered(t *testing.T) {
	c := established(t, &Config{Retries: 3, MaxRTO: time.Second}, "")
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001 win 0")
	c.write(500)
	c.wantIdle()
	for range 200 {
		c.wantTimer(c.timers[timerPersist] - c.now)
		c.want("A 1000 ack 1")
		c.wantIdle()
		c.send("A 1 ack 1001 win 0")
		c.wantIdle()
	}
	c.wantState(Established)
}

func TestUnansweredProbesEndTheConnection(t *testing.T) {
	c := established(t, &Config{Retries: 3}, "")
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001 win 0")
	c.write(500)
	c.wantIdle()
	for range 3 {
		c.wantTimer(c.timers[timerPersist] - c.now)
		c.want("A 1000 ack 1")
		c.wantIdle()
	}
	c.advance(time.Minute)
	c.wantEnd(ErrTimeout)
}

func TestProbesAreBoundedWithoutProgram(t *testing.T) {
	c := established(t, &Config{Retries: 3}, "")
	c.send("A 1 ack 1 win 0")
	c.write(500)
	c.Close(c.now)
	c.wantIdle()
	for range 3 {
		c.wantTimer(c.timers[timerPersist] - c.now)
		c.want("A 0 ack 1")
		c.send("A 1 ack 1 win 0")
		c.wantIdle()
	}
	c.advance(time.Minute)
	c.want("RA 1 ack 1")
	c.wantEnd(ErrTimeout)
}

func TestUserTimeoutBoundsClosedWindow(t *testing.T) {
	c := established(t, nil, "")
	c.SetUserTimeout(c.now, 3*time.Second)
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001 win 0")
	c.write(500)
	c.wantIdle()
	for c.State() != Closed {
		c.advance(100 * ms)
		if c.drain() > 0 {
			c.send("A 1 ack 1001 win 0")
			c.drain()
		}
	}
	c.wantEnd(ErrTimeout)
	if d := c.now - time.Hour; d < 3*time.Second || d > 8*time.Second {
		t.Errorf("ended after %v", d)
	}
}

func TestFinWaitsForWindow(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1 ack 1 win 100")
	c.write(100)
	c.CloseWrite(c.now)
	c.want("PA 1:101 ack 1") // the data fills the window, so the FIN would be outside of it
	c.send("A 1 ack 101 win 0")
	c.wantIdle()
	c.wantTimer(c.timers[timerPersist] - c.now)
	c.want("A 100 ack 1")
	c.send("A 1 ack 101 win 100")
	c.want("FA 101 ack 1")
}

func TestPeerThatShrinksItsWindow(t *testing.T) {
	// RFC 9293 section 3.8.6: shrinking the window is discouraged, but must be handled.
	c := established(t, nil, ", sackOK")
	c.write(5000)
	for range 5 {
		c.poll()
	}
	c.send("A 1 ack 1001 win 0") // now 4000 bytes are in flight, beyond the closed window
	c.wantIdle()
	for range 30 { // the first segment is retransmitted for as long as the peer answers
		for !c.Pending(c.now) {
			c.now = max(c.now, c.Deadline())
			c.Tick(c.now)
		}
		c.drain()
		c.send("A 1 ack 1001 win 0")
		c.wantIdle()
	}
	c.wantState(Established)
	c.send("A 1 ack 1001 win 5000")
	c.drain()
	c.send("A 1 ack 5001")
	c.wantIdle()
}

func TestAckNumberIsInsideShrunkWindow(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(5000)
	c.drain()
	c.send("A 1 ack 1001 win 1500") // the window has room for 1500 of the 4000 bytes in flight
	c.send("PA 1:11 ack 1001 win 1500")
	c.advance(40 * ms)
	for c.poll() != nil {
	}
	c.send("PA 1:11 ack 1001 win 1500")
	c.want("A 2501 ack 11") // an ACK number inside the window; the peer would ignore a number beyond it
}

// The owner of a connection whose device is full calls Pending instead of Poll. Data that is held back for a timer
// then still has its deadline.
func TestHeldDataHasADeadlineWithoutAPoll(t *testing.T) {
	for name, hold := range map[string]func(c *testConn){
		"closed window": func(c *testConn) { c.send("A 1 ack 1 win 0") },
		"cork":          func(c *testConn) { c.SetCork(c.now, true) },
	} {
		c := established(t, nil, "")
		hold(c)
		c.write(100)
		if c.Pending(c.now) {
			t.Errorf("%s: data held back is pending", name)
		}
		if !c.timers.armed(timerPersist) {
			t.Errorf("%s: no timer is armed for it", name)
		}
	}
}
