package tcp

import (
	"testing"
)

// ECN (RFC 3168).

func ecnConn(t *testing.T) *testConn {
	c := accept(t, &Config{ECN: ECNAccept}, "SEC 0 win 50000 <mss 1000, sackOK>")
	c.want("SAE 0 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 1 win 50000")
	c.ack.quick = 0
	c.ack.last = at(c.now)
	return c
}

func TestECNNegotiation(t *testing.T) {
	for _, x := range []struct {
		mode           ECNMode
		syn, synAck    string
		passive, agree bool
	}{
		{ECNOff, "SEC 0", "SA 0 ack 1", true, false},
		{ECNAccept, "S 0", "SA 0 ack 1", true, false},
		{ECNAccept, "SEC 0", "SAE 0 ack 1", true, true},
		{ECNAsk, "SEC 0", "SAE 0 ack 1", true, true},
		{ECNAccept, "S 0", "SAE 0 ack 1", false, false},
		{ECNAsk, "SEC 0", "SA 0 ack 1", false, false},
		{ECNAsk, "SEC 0", "SAE 0 ack 1", false, true},
		{ECNAsk, "SEC 0", "SAEC 0 ack 1", false, false}, // a peer that only echoes the ECN bits of our SYN does not support ECN
	} {
		var c *testConn
		if x.passive {
			c = accept(t, &Config{ECN: x.mode}, x.syn)
			c.want(x.synAck)
			c.send("A 1 ack 1")
		} else {
			c = dial(t, &Config{ECN: x.mode})
			c.want(x.syn)
			c.send(x.synAck)
		}
		if got := c.Info(c.now).ECN; got != x.agree {
			t.Errorf("%+v: agreed %v", x, got)
		}
	}
}

func TestECNSynIsRepeatedWithoutIt(t *testing.T) {
	c := dial(t, &Config{ECN: ECNAsk})
	c.want("SEC 0")
	c.advance(c.Deadline() - c.now)
	c.want("S 0") // the repeated SYN does not request ECN (RFC 3168 section 6.1.1.1)
}

func TestECNReceiver(t *testing.T) {
	c := ecnConn(t)
	c.send("A 1:501 ack 1 CE")
	c.want("AE 1 ack 501") // ECE is sent at once, and in each segment until the peer sets CWR
	c.send("A 501:1501 ack 1")
	c.send("A 1501:2501 ack 1")
	c.want("AE 1 ack 2501")
	c.send("AC 2501:3501 ack 1")
	c.send("A 3501:4501 ack 1")
	c.want("A 1 ack 4501")
	c.send("AC 4501:5501 ack 1 CE") // CWR and a new mark
	c.want("AE 1 ack 5501")
}

func TestECNSender(t *testing.T) {
	c := ecnConn(t)
	c.write(30_000)
	for range 10 {
		out := c.poll()
		if out == nil || !out.ECT {
			t.Fatal("data is not ECN-capable")
		}
	}
	c.wantIdle()
	c.advance(10 * ms)
	c.send("AE 1 ack 1001")
	if i := c.Info(c.now); i.CAState != CACWR || i.SndSsthresh != 7 {
		t.Errorf("%+v", i)
	}
	sent := 0
	for at := 2001; at <= 10001; at += 1000 {
		c.send("AE 1 ack " + itoa(at)) // another mark in the same window of data is ignored
		for {
			out := c.poll()
			if out == nil {
				break
			}
			if cwr := out.Flags.Has(1 << 7); cwr != (sent == 0) {
				t.Errorf("segment %d has CWR %v", sent, cwr)
			}
			sent++
		}
	}
	c.send("A 1 ack 11001")
	if i := c.Info(c.now); i.CAState != CAOpen || i.SndSsthresh != 7 || i.SndCwnd != 7 || i.DeliveredCE == 0 {
		t.Errorf("%+v", i)
	}
	if c.Info(c.now).TotalRetrans != 0 {
		t.Error("something was sent again")
	}
}

func TestECNNotOnRetransmissionsAndAcks(t *testing.T) {
	c := ecnConn(t)
	c.write(1000)
	if out := c.want("PA 1:1001 ack 1"); !out.ECT {
		t.Error("data is not ECN-capable")
	}
	c.advance(c.Deadline() - c.now)
	if out := c.want("PA 1:1001 ack 1"); out.ECT {
		t.Error("a retransmission is ECN-capable (section 6.1.5)")
	}
	c.send("PA 1:2001 ack 1001")
	if out := c.want("A 1001 ack 2001"); out.ECT {
		t.Error("an acknowledgment is ECN-capable (section 6.1.4)")
	}
}
