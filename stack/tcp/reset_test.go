package tcp

import "testing"

// A reset in every state: RFC 9293 section 3.10.7.3 for SYN-SENT, section 3.10.7.4 (step 2, with RFC 5961
// section 3) for the others.

// beginning brings a connection to SYN-SENT or SYN-RECEIVED, and uses inState for other states. It returns
// the next sequence number of the peer.
func beginning(t *testing.T, s State) (*testConn, int) {
	t.Helper()
	switch s {
	case SynSent:
		c := dial(t, nil)
		c.want("S 0")
		return c, 0
	case SynReceived:
		c := accept(t, nil, "S 0 win 50000 <mss 1000>")
		c.want("SA 0 ack 1")
		return c, 1
	}
	c := inState(t, s)
	return c, c.rcv.nxt.Sub(Seq(c.irs))
}

func TestResetInEveryState(t *testing.T) {
	type outcome struct {
		exact     error  // error after a reset with the exact number
		challenge string // answer to a reset elsewhere in the window
	}
	for state, want := range map[State]outcome{
		SynReceived: {ErrReset, "A 1 ack 1"},
		Established: {ErrReset, "A 1 ack 1"},
		FinWait1:    {ErrReset, "A 2 ack 1"},
		FinWait2:    {ErrReset, "A 2 ack 1"},
		CloseWait:   {ErrPipe, "A 1 ack 2"},
		Closing:     {nil, "A 2 ack 2"},
		LastAck:     {nil, "A 2 ack 2"},
	} {
		t.Run(state.String(), func(t *testing.T) {
			c, next := beginning(t, state)
			c.send("R " + itoa(next+2_000_000))
			c.send("R " + itoa(next-1))
			c.wantIdle()
			c.wantState(state)
			c.wantCount(DropSequence, 2)
			c.send("R " + itoa(next+1))
			c.want(want.challenge)
			c.wantState(state)
			c.send("R " + itoa(next))
			c.wantEnd(want.exact)
			c.wantIdle()
		})
	}
}

// RFC 1337 section 3: a reset does not end TIME-WAIT, which would allow old segments in.
func TestResetInTimeWait(t *testing.T) {
	c, next := beginning(t, TimeWait)
	for _, n := range []int{next, next + 1, next - 1, next + 2_000_000} {
		c.send("R " + itoa(n))
		c.wantIdle()
		c.wantState(TimeWait)
	}
}

func TestResetInSynSent(t *testing.T) {
	c, _ := beginning(t, SynSent)
	c.send("R 0") // RFC 9293 section 3.10.7.3: "Otherwise (no ACK), drop the segment"
	c.send("RA 0 ack 5")
	c.wantIdle()
	c.wantState(SynSent)
	c.send("RA 0 ack 1")
	c.wantEnd(ErrRefused)
	c.wantIdle()
}
