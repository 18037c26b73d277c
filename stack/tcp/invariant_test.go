package tcp

import (
	"testing"

	"loam/stack/tcp/ranges"
)

// checkInvariants checks the invariants that hold after every event. It does not call t.Helper, which would
// cost more than the checks.
func checkInvariants(t testing.TB, c *Conn) {
	if c.snd.nxt.Less(c.snd.una) {
		t.Fatalf("SND.NXT %d in front of SND.UNA %d", c.snd.nxt, c.snd.una)
	}
	if c.rcv.edge.Less(c.rcv.nxt) && c.state != SynSent && c.state != Closed {
		t.Fatalf("RCV.NXT %d behind the right edge %d", c.rcv.nxt, c.rcv.edge)
	}
	checkSent(t, c)
	checkRanges(t, c)
	if c.state == Closed && c.Deadline() != Never {
		t.Fatal("a timer is armed in CLOSED")
	}
	if c.sent.len() > 0 && !c.timers.armed(timerRTO) {
		t.Fatal("data in flight and no retransmission timer")
	}
	if c.state >= Established && c.pipe() == 0 && c.congestionRoom() < c.segment() {
		t.Fatalf("nothing in the network, and no room in a window of %d", c.window.Size)
	}
}

// checkSent checks that the sent ranges cover the data in flight, and checks their sums.
func checkSent(t testing.TB, c *Conn) {
	q := &c.sent
	var sum sentQueue
	at := c.snd.una
	for i := range q.len() {
		r := q.at(i)
		if r.seq != at || !r.seq.Less(r.end) {
			t.Fatalf("range %d is [%d, %d), want it to begin at %d", i, r.seq, r.end, at)
		}
		at = r.end
		sum.account(r, 1)
		if r.resend() && r.seq.Less(q.resendFrom) {
			t.Fatalf("range %d waits to be sent again in front of resendFrom", i)
		}
		if r.flags&sentSacked != 0 && r.flags&(sentLost|sentRetrans) != 0 {
			t.Fatalf("range %d is acknowledged and has flags %b", i, r.flags)
		}
	}
	if c.state != Closed && c.state != TimeWait && at != c.snd.nxt {
		t.Fatalf("sent ranges end at %d, SND.NXT is %d", at, c.snd.nxt)
	}
	if sum.sacked != q.sacked || sum.lost != q.lost || sum.retrans != q.retrans || sum.resend != q.resend ||
		sum.sackedSegs != q.sackedSegs {
		t.Fatalf("sums are %+v, want %+v", *q, sum)
	}
	if q.len() > maxSent {
		t.Fatalf("%d sent ranges", q.len())
	}
}

// checkRanges checks the list of ranges after a gap.
func checkRanges(t testing.TB, c *Conn) {
	if c.rcv.behind == nil {
		return
	}
	at, behind := c.rcv.nxt, c.rcv.behind
	for i, s := range behind.Ranges {
		if !at.Less(s.From) || !s.From.Less(s.To) {
			t.Fatalf("received range %d is [%d, %d) behind %d", i, s.From, s.To, at)
		}
		at = s.To
	}
	if most := ranges.Limit(c.rcv.size); len(behind.Ranges) > most {
		t.Fatalf("%d received ranges, want at most %d", len(behind.Ranges), most)
	}
	for _, s := range behind.Recent[:behind.NumRecent] {
		if i := behind.Search(s.From); i == len(behind.Ranges) || behind.Ranges[i] != s {
			t.Fatalf("[%d, %d) would be told to the peer and is no range", s.From, s.To)
		}
	}
}
