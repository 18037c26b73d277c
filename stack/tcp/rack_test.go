package tcp

import (
	"testing"
)

// RACK (RFC 8985 section 6).

// gap is the time between the segments that the function spaced sends.
const gap = ms / 2

// spaced opens a connection on a path of 10 ms and sends n segments, one after each gap. Then it advances the time to
// the arrival of the first acknowledgment.
func spaced(t *testing.T, options string, n int) *testConn {
	t.Helper()
	c := established(t, &Config{InitialWindow: n}, options)
	for range n {
		c.write(1000)
		c.poll()
		c.advance(gap)
	}
	c.advance(10*ms - Time(n)*gap)
	c.write(100_000)
	return c
}

func TestReorderingWithinWindowIsNotLoss(t *testing.T) {
	c := spaced(t, ", sackOK", 10)
	c.send("A 1 ack 1 <sack 1001-2001>")
	c.drain()
	c.wantCount(FastRecoveries, 0)
	if !c.timers.armed(timerReorder) {
		t.Fatal("no timer for the missing segment")
	}
	c.send("A 1 ack 2001") // the segment was late and not lost
	if c.timers.armed(timerReorder) {
		t.Error("the timer is left running")
	}
	if i := c.Info(c.now); i.ReorderSeen != 1 || i.Lost != 0 {
		t.Errorf("%+v", i)
	}
}

func TestReorderTimerFindsLoss(t *testing.T) {
	c := spaced(t, ", sackOK", 10)
	c.advance(gap) // the round trip of the second segment, 10 ms
	c.send("A 1 ack 1 <sack 1001-2001>")
	c.drain()
	// The first segment was sent one gap before the acknowledged one. It is lost after a quarter of the
	// minimum round trip time less that gap.
	c.wantTimer(10*ms/4 - gap)
	c.want("A 1:1001 ack 1")
	c.wantCount(FastRecoveries, 1)
	if i := c.Info(c.now); i.CAState != CARecovery {
		t.Errorf("%+v", i)
	}
}

func TestOnceReorderingIsSeenThreeDuplicatesAreNotLoss(t *testing.T) {
	c := spaced(t, ", sackOK", 10)
	c.send("A 1 ack 1 <sack 1001-2001>")
	c.drain()
	c.send("A 1 ack 2001")
	c.drain()
	c.advance(2 * ms)
	c.send("A 1 ack 2001 <sack 3001-6001>")
	c.drain()
	c.wantCount(FastRecoveries, 0)
	c.send("A 1 ack 6001")
	c.wantCount(FastRecoveries, 0)
	if i := c.Info(c.now); i.Reordering != 4 || i.ReorderSeen != 2 {
		t.Errorf("degree of reordering is %d, seen %d times; want 4, 2", i.Reordering, i.ReorderSeen)
	}
}

func TestDSACKWidensReorderWindow(t *testing.T) {
	c := spaced(t, ", sackOK", 10)
	c.rack.reordering = true
	if w := c.reorderWindow(); w != 2500*1000 {
		t.Errorf("window is %v, want a quarter of 10 ms", w)
	}
	c.send("A 1 ack 2001 <sack 1-1001>")
	c.drain()
	c.send("A 1 ack 2001 <sack 1001-2001>") // D-SACKs count once in each round trip
	if w := c.reorderWindow(); w != 5*ms {
		t.Errorf("window is %v after D-SACK, want half of 10 ms", w)
	}
	for range rackPersist {
		c.rackRecovered()
	}
	if w := c.reorderWindow(); w != 2500*1000 {
		t.Errorf("window is %v after %d recoveries", w, rackPersist)
	}
	c.rack.mult = 200
	if w := c.reorderWindow(); w != c.rtt.srtt {
		t.Errorf("window is %v, want no more than SRTT", w)
	}
}

func TestAckOfOriginalSaysNothingOfRetransmission(t *testing.T) {
	// RFC 8985 section 6.2 step 2: an echo from before the retransmission, or an answer faster than the path allows, is
	// for the first transmission.
	for _, options := range []string{", sackOK", ", sackOK, ts 7000 0"} {
		c := sending(t, nil, options, 10)
		size := int(c.window.MSS)
		echo := c.tsEcho
		c.send("A 1 ack 1 <sack " + itoa(size+1) + "-" + itoa(4*size+1) + ">")
		c.want("A 1:" + itoa(size+1) + " ack 1")
		c.drain()
		at := c.rack.at
		c.advance(ms)
		c.tsEcho = echo
		c.send("A 1 ack " + itoa(size+1))
		if c.rack.at != at {
			t.Errorf("with %q: taken for the retransmission", options)
		}
	}
}

func TestLostRetransmissionIsFoundBehindAHole(t *testing.T) {
	// A receiver keeps echoing the timestamp of the last segment in order (RFC 7323 section 4.3), even if
	// retransmissions arrive that lie after the hole. The echo must not make them look like first transmissions.
	for _, options := range []string{", sackOK", ", sackOK, ts 7000 0"} {
		c := sending(t, nil, options, 10)
		size := int(c.window.MSS)
		at := func(n int) string { return itoa(n*size + 1) }
		echo := c.tsEcho
		c.send("A 1 ack 1 <sack " + at(1) + "-" + at(4) + " " + at(5) + "-" + at(9) + ">")
		c.want("A 1:" + at(1) + " ack 1")
		c.want("A " + at(4) + ":" + at(5) + " ack 1")
		c.drain()
		c.advance(10 * ms)
		c.tsEcho = echo
		c.send("A 1 ack 1 <sack " + at(1) + "-" + at(9) + ">")
		c.want("A 1:" + at(1) + " ack 1")
	}
}
