package tcp

import (
	"testing"
	"time"
)

// SEGMENT ARRIVES: acceptance, RST, SYN, ACK (RFC 9293 section 3.10.7.4).

func TestUnacceptableSegmentIsAcknowledged(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001")
	for _, s := range []string{
		"PA 1:1001 ack 1",          // all old
		"PA 70000:70100 ack 1",     // behind the window
		"FA 1 ack 1",               // an old FIN
		"PA 1:2001 ack 1",          // ends where the window begins
		"A 2000 ack 1",             // without data, in front of the window
		"A 70000 ack 1",            // without data, behind it
		"PA -30000:-29000 ack 1",   // long past
		"PA 2000000:2000100 ack 1", // far ahead
	} {
		c.send(s)
		c.want("A 1 ack 2001 <>")
		c.wantIdle()
		c.wantState(Established)
		c.wantReadable(2000)
	}
	c.wantCount(DropSequence, 8)
}

func TestUnacceptableResetIsDropped(t *testing.T) {
	c := established(t, nil, "")
	c.send("R 100000")
	c.send("R 0")
	c.wantIdle()
	c.wantState(Established)
	c.wantCount(DropSequence, 2)
}

func TestSegmentIsTrimmedToWindow(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, "")
	c.reads = false
	c.send("A 1:1001 ack 1")
	c.send("A 501:1501 ack 1") // its front has come before
	c.wantReadable(1500)
	c.send("A 1501:4501 ack 1") // its end is beyond the window
	c.wantReadable(4096)
	c.want("A 1 ack 4097 win 0")
	c.wantIdle()
}

func TestClosedWindowLetsAckAndResetThrough(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, "")
	c.reads = false
	c.send("A 1:4097 ack 1")
	c.want("A 1 ack 4097 win 0")
	c.write(500)
	c.want("PA 1:501 ack 4097")
	// "special allowance should be made to accept valid ACKs, URGs, and RSTs".
	c.send("A 4097:4098 ack 501")
	if c.out.released != 500 {
		t.Fatal("an ACK was not looked at because the window is closed")
	}
	c.want("A 501 ack 4097 win 0")
	c.wantReadable(4096)
	c.send("R 4097")
	c.wantEnd(ErrReset)
}

func TestAckAtRightEdgeCounts(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, "")
	c.write(500)
	c.want("PA 1:501 ack 1")
	c.send("A 1001:4097 ack 1") // fills the window behind a gap
	c.want("A 501 ack 1")
	c.send("A 4097 ack 501") // the peer has no other number to use
	if c.out.released != 500 {
		t.Fatal("ACK at the right edge was dropped")
	}
}

func TestReset(t *testing.T) {
	for _, state := range []State{Established, FinWait1, FinWait2, CloseWait, Closing, LastAck} {
		c := inState(t, state)
		c.send("R " + itoa(c.rcv.nxt-Seq(c.irs)))
		if state == Closing || state == LastAck {
			c.wantEnd(nil) // all data had been delivered
		} else {
			c.wantEnd(ErrReset)
		}
	}
}

func TestResetWithDataInFlightInLastAck(t *testing.T) {
	c := inState(t, CloseWait)
	c.write(100)
	c.CloseWrite(c.now)
	c.want("FPA 1:101 ack 2")
	c.send("R 2")
	c.wantEnd(ErrReset)
}

// RFC 5961: blind attacks.

func TestBlindAttacks(t *testing.T) {
	for _, a := range []struct {
		segment string
		says    string // what is answered: a challenge or nothing
		counter Counter
	}{
		{"R 1001", "", NumCounters}, // control: this one is exact and counts
		{"R 1002", "A 1 ack 1001", DropRST},
		{"R 60000", "A 1 ack 1001", DropRST},
		{"R 1000", "", DropSequence},
		{"R 70000", "", DropSequence},
		{"S 1001", "A 1 ack 1001", DropSYN},
		{"S 30000", "A 1 ack 1001", DropSYN},
		{"S 70000", "A 1 ack 1001", DropSequence},
		{"SA 1001 ack 1", "A 1 ack 1001", DropSYN},
		{"PA 1001:1101 ack 2", "A 1 ack 1001", DropAck},
		{"PA 1001:1101 ack 1000000", "A 1 ack 1001", DropAck},
		{"PA 1001:1101 ack -50001", "A 1 ack 1001", DropAck}, // older than the largest window
		{"PA 1001:1101 ack -2000000000", "A 1 ack 1001", DropAck},
		{"FA 1001 ack 1000000", "A 1 ack 1001", DropAck},
		{"P 1001:1101", "", DropNoAck},
		{"F 1001", "", DropNoAck},
		{"UP 1001:1101 urg 5", "", DropNoAck},
	} {
		c := established(t, nil, "")
		c.send("A 1:1001 ack 1")
		c.advance(40 * ms)
		c.want("A 1 ack 1001")
		c.send(a.segment)
		if a.counter == NumCounters {
			c.wantEnd(ErrReset)
			continue
		}
		if a.says != "" {
			c.want(a.says)
		}
		c.wantIdle()
		c.wantState(Established)
		c.wantReadable(1000)
		c.wantCount(a.counter, 1)
		c.send("PA 1001:1101 ack 1") // the peer goes on undisturbed
		c.wantReadable(1100)
	}
}

func TestOldAckWithinLargestWindowIsAccepted(t *testing.T) {
	c := established(t, nil, "")
	c.send("PA 1:101 ack -49999") // SND.UNA - MAX.SND.WND =< SEG.ACK
	c.wantReadable(100)
}

func TestChallengesAreLimited(t *testing.T) {
	c := established(t, nil, "")
	for range 50 {
		c.send("R 1002")
		c.drain()
	}
	c.wantCount(ChallengeAcks, 10) // RFC 5961 section 7
	c.wantCount(ChallengeLimit, 40)
	c.advance(500 * ms)
	c.send("R 1002")
	c.send("R 1002")
	c.wantCount(ChallengeAcks, 1) // two a second from then on
	c.advance(5 * time.Second)
	c.send("R 1002")
	c.want("A 1 ack 1")
	// An answer to a segment without data counts as well, so that two sides
	// that disagree do not talk for ever.
	for range 50 {
		c.send("A 0 ack 1")
		c.drain()
	}
	c.wantCount(ChallengeAcks, 10)
}

func TestPeerThatLostItsStateIsLetGo(t *testing.T) {
	// Half-open connection discovery, RFC 9293 figure 9.
	c := established(t, nil, "")
	c.send("S 400 win 60000 <mss 1000>") // the peer has restarted and opens anew
	c.want("A 1 ack 1")                  // tells it where we are
	c.send("R 1")                        // it has no such connection
	c.wantEnd(ErrReset)
}

func TestResetForUnknownConnection(t *testing.T) {
	c := newTest(t)
	for _, x := range []struct{ in, out string }{
		{"A 7 ack 9", "R 9"},              // <SEQ=SEG.ACK><CTL=RST>
		{"PA 7:17 ack 9", "R 9"},          // the same
		{"SA 7 ack 9", "R 9"},             //
		{"S 7", "RA -1000000 ack 8"},      // <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>
		{"F 7:17", "RA -1000000 ack 18"},  //
		{"SF 7:17", "RA -1000000 ack 19"}, // SYN and FIN both count
		{"R 7", ""}, {"RA 7 ack 9", ""},   // never a reset for a reset
	} {
		var out Out
		seg := c.parse(x.in)
		if !ResetFor(seg, &out.TCP) {
			if x.out != "" {
				t.Errorf("no answer to %s", x.in)
			}
			continue
		}
		if got := c.format(&out); got != x.out || out.SrcPort != 80 || out.DstPort != 40000 {
			t.Errorf("%s is answered by %s, want %s", x.in, got, x.out)
		}
	}
}

func TestUrgentDataIsInline(t *testing.T) {
	c := established(t, nil, "")
	c.send("UPA 1:101 ack 1 urg 50") // RFC 6093
	c.wantReadable(100)
}

// PAWS and timestamps (RFC 7323).

func TestPAWS(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	c.send("A 1:989 ack 1 <ts 8000 3600000>")
	c.advance(40 * ms)
	c.want("A 1 ack 989 <ts 3600050 8000>")
	c.send("A 989:1989 ack 1 <ts 7999 3600000>")
	c.want("A 1 ack 989 <ts 3600050 8000>") // R1: not acceptable, answered, dropped
	c.wantReadable(988)
	c.wantCount(DropPAWS, 1)
	c.send("R 989 <ts 1 0>") // a reset is never subject to it
	c.wantEnd(ErrReset)
}

func TestPAWSAcrossTimestampWrap(t *testing.T) {
	c := accept(t, nil, "S 0 win 50000 <mss 1000, ts -10 0>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1 <ts -5 3600000>")
	c.send("A 1:101 ack 1 <ts 5 3600000>") // the peer's clock has wrapped
	c.wantReadable(100)
	c.send("A 101:201 ack 1 <ts -5 3600000>")
	c.wantReadable(100)
	c.wantCount(DropPAWS, 1)
}

func TestPAWSOldTimestampExpires(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	c.advance(25 * 24 * time.Hour)
	c.send("A 1:101 ack 1 <ts 6000 3600000>") // section 5.5: TS.Recent is too old to compare
	c.wantReadable(100)
}

func TestTimestampMissing(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	c.send("A 1:101 ack 1 <nots>")
	c.wantReadable(0) // SHOULD be dropped silently, MUST NOT end the connection
	c.wantIdle()
	c.wantState(Established)
	c.wantCount(DropTimestamp, 1)
	c.send("R 1 <nots>")
	c.wantEnd(ErrReset) // but a reset needs none
}

func TestTimestampEchoedIsOfFirstSegmentDelayed(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	// Section 4.3: with a delayed acknowledgment the earliest timestamp is
	// echoed, so that the peer measures the delay as well.
	c.send("A 1:501 ack 1 <ts 7100 3600000>")
	c.send("A 501:601 ack 1 <ts 7110 3600000>")
	c.advance(40 * ms)
	c.want("A 1 ack 601 <ts 3600050 7100>")
	// A segment behind a gap does not count, the one that fills it does.
	c.send("A 701:801 ack 1 <ts 7200 3600000>")
	c.want("A 1 ack 601 <ts 3600050 7100>")
	c.send("A 601:701 ack 1 <ts 7210 3600000>")
	c.want("A 1 ack 801 <ts 3600050 7210>")
}
