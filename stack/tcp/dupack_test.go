package tcp

import (
	"testing"

	"loam/stack/tcp/congestion"
)

// congestion.NewReno (RFC 6582), for peers without SACK.

func TestNewReno(t *testing.T) {
	c := sending(t, &Config{Congestion: congestion.NewReno}, "", 10)
	c.send("A 1 ack 1")
	c.want("A 10001:11001 ack 1") // limited transmit (RFC 3042): a duplicate allows one new segment
	c.send("A 1 ack 1")
	c.want("A 11001:12001 ack 1")
	c.send("A 1 ack 1")
	c.want("A 1:1001 ack 1") // the third duplicate
	c.wantIdle()
	for range 8 {
		c.send("A 1 ack 1")
	}
	c.drain()
	c.advance(10 * ms)
	c.send("A 1 ack 3001") // a partial acknowledgment: the next hole is at 3001
	c.want("A 3001:4001 ack 1")
	if i := c.Info(c.now); i.CAState != CARecovery {
		t.Errorf("%+v", i)
	}
	c.drain()
	c.send("A 1 ack 12001")
	c.drain()
	if i := c.Info(c.now); i.CAState != CAOpen || i.SndCwnd != 5 {
		t.Errorf("after recovery: %+v", i)
	}
	c.wantCount(FastRecoveries, 1)
}

func TestNewRenoIgnoresDuplicatesOfLastRecovery(t *testing.T) {
	// Duplicates that belong to the last recovery are ignored (RFC 6582 section 3.2 step 2).
	c := sending(t, nil, "", 10)
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1:1001 ack 1")
	c.send("A 1 ack 10001")
	c.drain()
	for range 5 {
		c.send("A 1 ack 10001") // a duplicate that unnecessary retransmissions cause
	}
	c.wantCount(FastRecoveries, 0)
}

func TestNotDuplicates(t *testing.T) {
	// RFC 5681 section 2: an acknowledgment is no duplicate if it has data or another window, or if no data
	// is in flight.
	c := sending(t, nil, "", 10)
	for i := range 5 {
		c.send("A " + itoa(1+10*i) + ":" + itoa(11+10*i) + " ack 1")
		c.send("A " + itoa(11+10*i) + " ack 1 win " + itoa(40000+i))
	}
	c.drain()
	c.wantCount(FastRecoveries, 0)

	c = established(t, nil, "")
	for range 5 {
		c.send("A 1 ack 1")
	}
	c.write(1000)
	c.drain()
	c.wantCount(FastRecoveries, 0)
}

func TestNewRenoImpatient(t *testing.T) {
	// Only the first partial acknowledgment restarts the timer.
	c := sending(t, nil, "", 20)
	for range 10 {
		c.send("A 1 ack 1")
	}
	c.drain()
	c.advance(10 * ms)
	c.send("A 1 ack 1001")
	c.drain()
	rto := c.timers[timerRTO]
	for i := 2; i < 8; i++ {
		c.advance(10 * ms)
		c.send("A 1 ack " + itoa(1000*i+1))
		c.drain()
		if c.timers[timerRTO] != rto {
			t.Fatal("the timer was started again")
		}
	}
}

func TestForgedDuplicatesDoNotInflate(t *testing.T) {
	// However many duplicates arrive, they count at most once for each segment in flight.
	c := sending(t, nil, "", 10)
	for range 1000 {
		c.send("A 1 ack 1")
		c.drain()
	}
	if n := c.flight(); n > 25_000 {
		t.Errorf("%d bytes in flight, the window was ten segments", n)
	}

	c = sending(t, nil, "", 10) // the same duplicates without fast recovery
	c.advance(c.timers[timerRTO] - c.now)
	c.drain()
	c.send("A 1 ack 10001")
	c.drain()
	n := c.flight()
	for range 1000 {
		c.send("A 1 ack 10001")
		c.drain()
	}
	if c.flight() > n+3000 { // the congestion window plus the segments of limited transmit
		t.Errorf("%d bytes in flight, %d before the duplicates", c.flight(), n)
	}
}
