package tcp

import "testing"

func TestPathMTU(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	size := c.window.Size
	if !c.ICMP(c.now, ICMPTooBig, testISS+1, 800) {
		t.Error("message not believed")
	}
	// Everything in flight was larger, so the path has dropped it. It is retransmitted in segments that fit.
	// The window is not reduced, because there was no congestion.
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
