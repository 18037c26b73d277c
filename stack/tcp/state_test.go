package tcp

import (
	"testing"
	"time"
)

// inState brings a connection to a state. The peer's next number is 1, or 2 if it has sent its FIN. The same
// holds for our next number.
func inState(t *testing.T, s State) *testConn {
	t.Helper()
	c := established(t, nil, "")
	closeWrite := func(want string) {
		c.CloseWrite(c.now)
		c.want(want)
	}
	switch s {
	case FinWait1, FinWait2, Closing, TimeWait:
		closeWrite("FA 1 ack 1")
	case CloseWait, LastAck:
		c.send("FA 1 ack 1")
		c.want("A 1 ack 2")
	}
	switch s {
	case FinWait2, TimeWait:
		c.send("A 1 ack 2")
	case Closing:
		c.send("FA 1 ack 1")
		c.want("A 2 ack 2")
	case LastAck:
		closeWrite("FA 1 ack 2")
	}
	if s == TimeWait {
		c.send("FA 1 ack 2")
		c.want("A 2 ack 2")
	}
	c.wantState(s)
	c.wantIdle()
	return c
}

// Closing: RFC 9293 section 3.6.

func TestNormalClose(t *testing.T) {
	// The segments of RFC 9293 figure 12, as side A sees them.
	c := established(t, nil, "")
	c.CloseWrite(c.now)
	c.wantState(FinWait1)
	c.want("FA 1 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 2")
	c.wantState(FinWait2)
	c.wantIdle()
	c.send("FA 1 ack 2")
	c.wantState(TimeWait)
	if !c.ReadClosed() {
		t.Error("the peer's FIN is not seen")
	}
	c.want("A 2 ack 2")
	c.wantTimer(60 * time.Second)
	c.wantEnd(nil)
}

func TestNormalCloseByPeer(t *testing.T) {
	// The segments of RFC 9293 figure 12, as side B sees them.
	c := established(t, nil, "")
	c.send("FA 1 ack 1")
	c.wantState(CloseWait)
	c.want("A 1 ack 2")
	c.write(100) // our direction of the connection is still open
	c.want("PA 1:101 ack 2")
	c.send("A 2 ack 101")
	c.CloseWrite(c.now)
	c.wantState(LastAck)
	c.want("FA 101 ack 2")
	c.send("A 2 ack 102")
	c.wantEnd(nil)
}

func TestSimultaneousClose(t *testing.T) {
	// The segments of RFC 9293 figure 13.
	c := established(t, nil, "")
	c.CloseWrite(c.now)
	c.want("FA 1 ack 1")
	c.send("FA 1 ack 1")
	c.wantState(Closing)
	c.want("A 2 ack 2")
	c.send("A 2 ack 2")
	c.wantState(TimeWait)
	c.wantTimer(60 * time.Second)
	c.wantEnd(nil)
}

func TestFinAndAckOfFinTogether(t *testing.T) {
	c := inState(t, FinWait1)
	c.send("FA 1 ack 2")
	c.wantState(TimeWait)
	c.want("A 2 ack 2")
}

func TestFinAfterAllData(t *testing.T) {
	c := established(t, nil, "")
	c.write(2500)
	c.CloseWrite(c.now)
	c.wantState(FinWait1) // RFC 9293 section 3.10.4: "in any case, enter FIN-WAIT-1"
	c.want("A 1:1001 ack 1")
	c.want("A 1001:2001 ack 1")
	c.want("FPA 2001:2501 ack 1") // the FIN is sent with the last data, which Nagle does not hold back
	c.wantIdle()
	c.write(10) // data after Close is not accepted
	c.wantIdle()
	c.send("A 1 ack 2501")
	c.wantState(FinWait1) // the peer has acknowledged all data, but not the FIN
	c.send("A 1 ack 2502")
	c.wantState(FinWait2)
}

func TestFinIsRetransmitted(t *testing.T) {
	c := inState(t, FinWait1)
	c.wantTimer(210 * ms) // the timeout is the smoothed round trip of 10 ms plus 200 ms
	c.want("FA 1 ack 1")
	c.wantTimer(420 * ms)
	c.want("FA 1 ack 1")
	c.send("A 1 ack 2")
	c.wantState(FinWait2)
	c.wantSilence(time.Hour)
}

func TestDataAfterHalfClose(t *testing.T) {
	for _, s := range []State{FinWait1, FinWait2} {
		c := inState(t, s)
		c.send("PA 1:101 ack 1")
		c.wantReadable(100)
		c.send("FPA 101:201 ack 2")
		c.wantReadable(200)
		c.wantState(TimeWait)
		c.want("A 2 ack 202")
	}
}

func TestFinOutOfOrder(t *testing.T) {
	c := established(t, nil, "")
	c.send("FPA 101:201 ack 1")
	c.want("A 1 ack 1")
	c.wantState(Established)
	c.send("A 1:101 ack 1")
	c.wantState(CloseWait)
	c.wantReadable(200)
	c.want("A 1 ack 202")
}

func TestDataBehindFinIsIgnored(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 201:301 ack 1")
	c.want("A 1 ack 1")
	c.send("FA 101 ack 1") // this FIN ends the stream before data that has already arrived
	c.want("A 1 ack 1")
	c.send("A 1:101 ack 1")
	c.wantReadable(100)
	c.wantState(CloseWait)
	c.want("A 1 ack 102")
	c.send("A 102:202 ack 1") // RFC 9293 section 3.10.7.4: "This should not occur [...] Ignore the segment text"
	c.wantReadable(100)
}

func TestDuplicateFin(t *testing.T) {
	for _, s := range []State{CloseWait, Closing, LastAck} {
		c := inState(t, s)
		seq := itoa(c.snd.nxt - Seq(c.iss))
		c.send("FA 1 ack 1")
		c.want("A " + seq + " ack 2")
		c.wantState(s)
	}
}

func TestClosingIgnoresText(t *testing.T) {
	c := inState(t, Closing)
	c.send("PA 2:102 ack 1")
	c.wantReadable(0)
	c.wantState(Closing)
}

func TestCloseWithUnreadDataResets(t *testing.T) {
	c := established(t, nil, "")
	c.reads = false
	c.send("PA 1:101 ack 1")
	c.Close(c.now)
	c.want("RA 1 ack 101") // shows the peer that its data was lost (RFC 9293 section 3.6.1, RFC 2525 section 2.17)
	c.wantEnd(ErrAborted)
}

// The reset has the number that the peer expects, which does not count our FIN. Any other number would be
// challenged (RFC 5961 section 3).
func TestDataAfterCloseResets(t *testing.T) {
	for _, s := range []State{FinWait1, FinWait2} {
		c := inState(t, s)
		c.Close(c.now)
		c.wantIdle()
		c.send("PA 1:101 ack 1")
		c.want("R 1")
		c.wantEnd(ErrAborted)
		c.wantCount(DropGone, 1)
	}
}

func TestCloseInOrder(t *testing.T) {
	c := established(t, nil, "")
	c.Close(c.now)
	c.want("FA 1 ack 1")
	c.send("FA 1 ack 2")
	c.want("A 2 ack 2")
	c.wantState(TimeWait)
}

func TestFinWait2IsBoundedWithoutProgram(t *testing.T) {
	c := inState(t, FinWait2)
	c.wantSilence(time.Hour) // the program still reads, so the wait is not bounded
	c.Close(c.now)
	c.wantTimer(60 * time.Second)
	c.wantEnd(nil)

	c = inState(t, FinWait1)
	c.Close(c.now)
	c.send("A 1 ack 2")
	c.wantState(FinWait2)
	c.wantTimer(60 * time.Second)
	c.wantEnd(nil)
}

// TCP_LINGER2 (tcp(7)) sets a wait for one connection. With a negative value, the connection is reset instead
// of waiting for the peer's FIN, as on Linux.
func TestFinWait2OfTheProgram(t *testing.T) {
	c := inState(t, FinWait2)
	c.SetFinWait2(c.now, 5*time.Second)
	c.Close(c.now)
	c.wantTimer(5 * time.Second)
	c.wantEnd(nil)

	c = inState(t, FinWait2)
	c.SetFinWait2(c.now, time.Millisecond)
	c.rtt.rto = 2 * time.Second
	c.Close(c.now)
	c.wantTimer(7 * time.Second)
	c.wantEnd(nil)

	for _, s := range []State{FinWait1, FinWait2} {
		c = inState(t, s)
		c.SetFinWait2(c.now, -1)
		c.Close(c.now)
		if s == FinWait1 {
			c.wantState(FinWait1)
			c.send("A 1 ack 2")
		}
		c.want("RA 2 ack 1")
		c.wantState(Closed)
	}
}

func TestAbort(t *testing.T) {
	for _, s := range []State{Established, FinWait1, FinWait2, CloseWait, Closing, LastAck, TimeWait} {
		c := inState(t, s)
		c.Abort(c.now)
		switch s {
		case Established:
			c.want("RA 1 ack 1")
		case CloseWait:
			c.want("RA 1 ack 2")
		case FinWait1, FinWait2:
			c.want("RA 2 ack 1")
		}
		// RFC 9293 section 3.10.5: "CLOSING, LAST-ACK, TIME-WAIT: respond with ok and delete the TCB".
		c.wantEnd(ErrAborted)
		c.Abort(c.now)
		c.wantEnd(ErrAborted)
	}
}

func TestSegmentAfterEnd(t *testing.T) {
	c := inState(t, Established)
	c.Abort(c.now)
	c.want("RA 1 ack 1")
	c.send("PA 1:101 ack 1")
	c.wantCount(DropClosed, 1)
	c.Close(c.now)
	c.CloseWrite(c.now)
	c.Written(c.now)
	c.wantEnd(ErrAborted)
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for s := Closed; s <= TimeWait; s++ {
		seen[s.String()] = true
	}
	for k := range NumCounters {
		seen[k.String()] = true
	}
	if len(seen) != int(TimeWait)+1+int(NumCounters) || seen[""] || seen[State(99).String()] || seen[Counter(99).String()] {
		t.Errorf("names are missing or the same: %v", seen)
	}
}

// A peer that closes its window over data in flight and keeps answering holds a connection only as long as
// the program keeps it open.
func TestClosedWindowHoldsNobodyWithoutProgram(t *testing.T) {
	c := established(t, nil, "")
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	answer := func(d time.Duration) {
		for until := c.now + d; c.now < until && c.State() != Closed; {
			c.advance(10 * time.Second)
			if c.drain() > 0 {
				c.send("A 1 ack 1 win 0")
				c.drain()
			}
		}
	}
	answer(2 * time.Hour)
	c.wantState(Established)
	c.Close(c.now)
	answer(2 * time.Hour)
	c.wantEnd(ErrTimeout)
}
