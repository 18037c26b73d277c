package tcp

import (
	"testing"
	"time"
)

// Tests of connections in the state TIME-WAIT.

func TestTimeWaitAnswersFinAndStartsAgain(t *testing.T) {
	c := inState(t, TimeWait)
	c.advance(50 * time.Second)
	c.send("FA 1 ack 2") // the peer repeats its FIN, because our ACK was lost
	c.want("A 2 ack 2")
	c.wantTimer(60 * time.Second)
	c.wantEnd(nil)
}

func TestTimeWaitAssassination(t *testing.T) {
	// RFC 1337: neither a reset nor an old duplicate ends or prolongs TIME-WAIT.
	c := inState(t, TimeWait)
	c.advance(50 * time.Second)
	c.send("R 2")
	c.wantIdle()
	c.wantCount(DropRST, 1)
	c.send("PA -99:1 ack 1")
	c.want("A 2 ack 2")
	c.send("A 2 ack 1")
	c.wantIdle()
	c.wantTimer(10 * time.Second)
	c.wantEnd(nil)
}

func TestTimeWaitReuse(t *testing.T) {
	for _, x := range []struct {
		options, syn string
		reuse        bool
	}{
		{"", "S 3", true}, // a number larger than any number of the previous connection
		{"", "S 2", false},
		{"", "S 1", false},
		{"", "SA 3", false},
		{"", "A 3", false},
		{"", "S 1 <ts 1 0>", true}, // RFC 6191: timestamps distinguish the connections
		{", ts 7000 0", "S 1 <ts 90000 0>", true},
		{", ts 7000 0", "S 3 <ts 6999 0>", false},
		{", ts 7000 0", "S 3 <ts 7010 0>", true}, // the same timestamp tick, but a larger number
		{", ts 7000 0", "S 1 <ts 7010 0>", false},
		{", ts 7000 0", "S 3 <nots>", true},
		{", ts 7000 0", "S 1 <nots>", false},
	} {
		c := established(t, nil, x.options)
		syn := c.parse(x.syn)
		if c.CanReuse(c.now, syn) {
			t.Errorf("reuse in ESTABLISHED")
		}
		c.CloseWrite(c.now)
		c.want("FA 1 ack 1")
		c.send("FA 1 ack 2")
		c.want("A 2 ack 2")
		c.wantState(TimeWait)
		if got := c.CanReuse(c.now, syn); got != x.reuse {
			t.Errorf("connection with %q and %s: reuse %v, want %v", x.options, x.syn, got, x.reuse)
		}
	}
}

func TestTimeWaitIsSmall(t *testing.T) {
	c := inState(t, TimeWait)
	if c.sent.buf != nil || c.cc != nil || c.rcv.behind != nil {
		t.Error("TIME-WAIT keeps memory")
	}
}

func TestProgramInTimeWait(t *testing.T) {
	c := inState(t, TimeWait)
	c.SetKeepAlive(c.now, time.Second, time.Second, 1)
	c.Close(c.now)
	c.Consumed(c.now)
	c.wantTimer(60 * time.Second)
	c.wantEnd(nil)
}
