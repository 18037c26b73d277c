package tcp

import (
	"testing"
)

// Fast retransmit and fast recovery with SACK (RFC 6675, RFC 8985, RFC 9937).

// sending opens a connection that sent n segments of 1000 bytes 10 ms ago, and has more to send.
func sending(t *testing.T, cfg *Config, options string, n int) *testConn {
	t.Helper()
	if cfg == nil {
		cfg = &Config{}
	}
	cfg.InitialWindow = n
	c := established(t, cfg, options)
	c.write(100_000)
	if got := c.drain(); got != n {
		t.Fatalf("%d segments sent, want %d", got, n)
	}
	c.advance(10 * ms)
	return c
}

func TestFastRetransmit(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	c.send("A 1 ack 1 <sack 1001-2001>")
	c.want("A 10001:11001 ack 1") // limited transmit (RFC 3042)
	c.send("A 1 ack 1 <sack 1001-3001>")
	c.want("A 11001:12001 ack 1")
	c.wantIdle()
	if i := c.Info(c.now); i.CAState != CADisorder || i.Sacked != 2 {
		t.Errorf("%+v", i)
	}
	c.send("A 1 ack 1 <sack 1001-4001>") // the third duplicate
	c.want("A 1:1001 ack 1")
	c.wantIdle()
	i := c.Info(c.now)
	if i.CAState != CARecovery || i.Sacked != 3 || i.Lost != 1 || i.Retrans != 1 || i.SndSsthresh != 7 {
		t.Errorf("%+v", i)
	}
	c.wantCount(FastRecoveries, 1)
}

func TestProportionalRateReduction(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	for i := range 3 {
		c.send("A 1 ack 1 <sack 1001-" + itoa(2001+1000*i) + ">")
		c.drain()
	}
	// 12 segments were in flight, and the slow start threshold is 0.7 times that number. The acknowledgments of the other 8
	// segments allow 0.7 times as many segments to be sent.
	sent := 1 // counts the retransmission that is already sent
	for i := 3; i < 11; i++ {
		c.advance(ms)
		c.send("A 1 ack 1 <sack 1001-" + itoa(2001+1000*i) + ">")
		sent += c.drain()
	}
	if sent < 6 || sent > 8 {
		t.Errorf("%d segments sent while 9 were delivered, want about 7 of 10", sent)
	}
	c.send("A 1 ack 12001")
	c.drain()
	if i := c.Info(c.now); i.CAState != CAOpen || i.SndCwnd != 7 {
		t.Errorf("after recovery: %+v", i)
	}
	if c.pipe() > 7000 {
		t.Errorf("%d bytes in flight after recovery", c.pipe())
	}
}

func TestAcknowledgmentsOfOneTurnLetAsMuchGo(t *testing.T) {
	// The first two duplicates allow one segment each (limited transmit), even if the third arrives before anything was
	// sent. Otherwise a small window would have only the retransmission in flight, and only a timeout would detect its
	// loss.
	c := sending(t, nil, ", sackOK", 4)
	c.send("A 1 ack 1 <sack 1001-2001>")
	c.send("A 1 ack 1 <sack 1001-3001>")
	c.send("A 1 ack 1 <sack 1001-4001>")
	c.want("A 1:1001 ack 1")
	c.want("A 4001:5001 ack 1")
	c.wantIdle() // nothing more may be sent: the threshold is 2.8 segments
	c.wantCount(FastRecoveries, 1)
}

func TestSeveralHolesAreRepairedInOneRoundTrip(t *testing.T) {
	c := sending(t, nil, ", sackOK", 20)
	c.send("A 1 ack 1 <sack 1001-2001>")
	c.send("A 1 ack 1 <sack 3001-4001 1001-2001>")
	c.send("A 1 ack 1 <sack 5001-6001 3001-4001 1001-2001>")
	c.send("A 1 ack 1 <sack 7001-20001 5001-6001 3001-4001>")
	var again []Seq
	for {
		out := c.poll()
		if out == nil {
			break
		}
		if off := Seq(out.Seq - c.iss); off < 20001 {
			again = append(again, off)
		}
	}
	want := []Seq{1, 2001, 4001, 6001}
	if len(again) != len(want) {
		t.Fatalf("sent again: %v, want %v", again, want)
	}
	for i := range want {
		if again[i] != want[i] {
			t.Fatalf("sent again: %v, want %v", again, want)
		}
	}
	if got := c.Info(c.now); got.SndSsthresh != 14 {
		t.Errorf("threshold is %d segments, want 14: one reduction for all", got.SndSsthresh)
	}
	c.send("A 1 ack 20001")
	c.wantCount(FastRecoveries, 1)
}

func TestLostRetransmissionIsFound(t *testing.T) {
	// RFC 8985 section 3: RACK finds a lost retransmission as well.
	c := sending(t, nil, ", sackOK", 10)
	c.send("A 1 ack 1 <sack 1001-10001>")
	c.want("A 1:1001 ack 1")
	c.want("A 10001:11001 ack 1")
	c.drain()
	c.advance(10 * ms)
	c.send("A 1 ack 1 <sack 1001-11001>") // data that was sent after the retransmission has arrived
	c.advance(3 * ms)                     // RACK waits a quarter of the minimum round trip time for reordering
	c.want("A 1:1001 ack 1")
	if i := c.Info(c.now); i.CAState != CARecovery || i.SndSsthresh != 7 {
		t.Errorf("%+v", i)
	}
}

func TestSplitFrame(t *testing.T) {
	c := established(t, &Config{InitialWindow: 20}, ", sackOK")
	c.burst = 64000
	c.write(9500)
	c.want("PA 1:9501 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 1 <sack 9001-9501 4001-6001 1001-2001>")
	if got := c.sent.len(); got != 6 {
		t.Fatalf("the frame is split into %d ranges, want 6", got)
	}
	c.want("A 1:1001 ack 1")
	c.want("A 2001:3001 ack 1")
	c.want("A 3001:4001 ack 1")
	c.wantIdle() // the amount sent in recovery is proportional to the delivered data
	c.send("A 1 ack 6001 <sack 9001-9501>")
	c.want("A 6001:8001 ack 1")
	c.want("A 8001:9001 ack 1")
	c.send("A 1 ack 7001 <sack 7001-9501>")
	if got := c.sent.len(); got != 1 {
		t.Fatalf("%d ranges, want 1: neighbours are joined", got)
	}
	c.send("A 1 ack 9501")
	c.wantIdle()
}

func TestPeerCannotShredTheRecord(t *testing.T) {
	c := established(t, &Config{InitialWindow: 20}, ", sackOK")
	c.burst = 64000
	c.write(9000)
	c.want("PA 1:9001 ack 1")
	for i := 100; i < 8900; i += 20 { // acknowledges pieces of ten bytes in the middle of segments
		c.send("A 1 ack 1 <sack " + itoa(i) + "-" + itoa(i+10) + ">")
	}
	if got := c.sent.len(); got > 2 {
		t.Errorf("%d ranges for nine segments", got)
	}
}

func TestSenselessSACKIsIgnored(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	for _, s := range []string{"2001-1001", "1001-1001", "9001-20001", "1000000-2000000", "2147483600-5"} {
		c.send("A 1 ack 1 <sack " + s + ">")
		if c.sent.sacked != 0 {
			t.Errorf("%s is believed", s)
		}
	}
	c.wantIdle()
}

func TestOldSACKDoesNotHurt(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	c.send("A 1 ack 5001")
	c.drain()
	c.send("A 1 ack 2001 <sack 3001-6001>") // an old acknowledgment, which newer ones have overtaken
	c.drain()
	if c.sent.sacked != 1000 {
		t.Errorf("%d bytes are taken for acknowledged, want 1000", c.sent.sacked)
	}
}
