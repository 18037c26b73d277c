package tcp

import "testing"

// ICMP (RFC 9293 section 3.9.2.2, RFC 5927) and path MTU (RFC 1191, RFC 8201).

func TestHardErrorEndsOpening(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	if !c.ICMP(c.now, ICMPRefused, testISS, 0) {
		t.Error("message not believed")
	}
	c.wantEnd(ErrRefused)
}

func TestHardErrorDoesNotEndConnection(t *testing.T) {
	c := sending(t, nil, "", 10)
	c.ICMP(c.now, ICMPRefused, testISS+1, 0) // RFC 5927 section 5.2
	c.wantState(Established)
	c.send("A 1 ack 10001")
	c.wantState(Established)
}

func TestSoftErrorInOpening(t *testing.T) {
	c := dial(t, &Config{SynRetries: 1})
	c.want("S 0")
	c.ICMP(c.now, ICMPUnreachable, testISS, 0)
	c.wantState(SynSent) // it may pass
	c.advance(c.Deadline() - c.now)
	c.want("S 0")
	c.advance(c.Deadline() - c.now)
	c.wantEnd(ErrUnreachable)
}

func TestForgedICMPIsIgnored(t *testing.T) {
	c := sending(t, nil, "", 10)
	for _, seq := range []uint32{testISS, testISS + 10001, testISS - 5000, 7} {
		for _, kind := range []ICMPKind{ICMPUnreachable, ICMPRefused, ICMPTooBig} {
			if c.ICMP(c.now, kind, seq, 600) {
				t.Errorf("kind %d about %d, which is not in flight, is believed", kind, seq)
			}
		}
	}
	c.wantCount(DropICMP, 12)
	if c.ICMP(c.now, ICMPTooBig, testISS+1, 1460) {
		t.Error("an MTU that is no smaller is believed")
	}
}

func TestPathMTU(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	size := c.window.Size
	if !c.ICMP(c.now, ICMPTooBig, testISS+1, 800) {
		t.Error("message not believed")
	}
	// All in flight was larger, so the path has dropped it: it is sent again in
	// segments that fit, and the window is not reduced, as congestion had no part.
	for i := range 12 {
		c.want("A " + itoa(1+800*i) + ":" + itoa(801+800*i) + " ack 1")
		if c.window.Size != size {
			t.Fatal("the window was reduced")
		}
		if i == 0 {
			continue
		}
	}
	c.drain()
	c.send("A 1 ack 10001")
	if i := c.Info(c.now); i.SndMSS != 800 || i.PathMSS != 800 || i.SndSsthresh != 1<<31-1 || i.CAState != CAOpen {
		t.Errorf("%+v", i)
	}
}

func TestPathMTUIsNotForcedTooLow(t *testing.T) {
	c := sending(t, nil, "", 10)
	c.ICMP(c.now, ICMPTooBig, testISS+1, 28)
	if got := c.Info(c.now).SndMSS; got != minReportedMSS {
		t.Errorf("segment size is %d, want %d", got, minReportedMSS)
	}
}

func TestSetMSS(t *testing.T) {
	c := established(t, nil, "")
	c.SetMSS(c.now, 500)
	c.write(1200)
	c.want("A 1:501 ack 1")
	c.want("A 501:1001 ack 1")
	c.SetMSS(c.now, 9000)
	if i := c.Info(c.now); i.PathMSS != 1460 || i.SndMSS != 1000 {
		t.Errorf("%+v: raised above the beginning", i)
	}
	c.SetMSS(c.now, 0)
	if i := c.Info(c.now); i.SndMSS != minMSS {
		t.Errorf("%+v", i)
	}
}

func TestTinyMSSOfPeerIsRaised(t *testing.T) {
	c := accept(t, nil, "S 0 win 50000 <mss 1>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.write(1000)
	c.want("A 1:89 ack 1")
}
