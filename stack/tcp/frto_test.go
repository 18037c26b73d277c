package tcp

import (
	"testing"
)

// F-RTO (RFC 5682), for paths without timestamps.

func TestFRTOSpurious(t *testing.T) {
	for _, options := range []string{", sackOK", ""} {
		c := sending(t, nil, options, 10)
		c.cancelProbe()
		c.advance(c.timers[timerRTO] - c.now)
		c.want("A 1:1001 ack 1")
		c.wantIdle()
		c.send("A 1 ack 1001")        // this may acknowledge the original or the retransmission
		c.want("A 10001:11001 ack 1") // step 2b of RFC 5682: new data is sent
		c.drain()
		c.send("A 1 ack 2001") // step 3b of RFC 5682: acknowledges data that was not retransmitted, so the timeout was spurious
		c.wantCount(Undos, 1)
		if i := c.Info(c.now); i.CAState != CAOpen || i.SndSsthresh != 1<<31-1 {
			t.Errorf("%q: %+v", options, i)
		}
	}
}

func TestFRTORealLoss(t *testing.T) {
	c := sending(t, nil, "", 10)
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1:1001 ack 1")
	c.send("A 1 ack 1001")
	c.want("A 10001:11001 ack 1")
	c.want("A 11001:12001 ack 1")
	c.wantIdle()
	c.send("A 1 ack 1001") // step 3a of RFC 5682: a duplicate, so the loss was real
	c.wantCount(Undos, 0)
	c.want("A 1001:2001 ack 1") // conventional recovery by retransmissions
}

func TestFRTOWithoutNewData(t *testing.T) {
	c := established(t, nil, "")
	c.write(5000)
	c.drain()
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1:1001 ack 1")
	c.send("A 1 ack 1001")
	c.want("A 1001:2001 ack 1") // conventional recovery, since without new data nothing shows whether the timeout was spurious
	c.want("A 2001:3001 ack 1")
}

func TestFRTOAckOfEverything(t *testing.T) {
	c := sending(t, nil, "", 10)
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1:1001 ack 1")
	c.send("A 1 ack 10001") // step 2a of RFC 5682: conventional recovery
	c.wantCount(Undos, 0)
	if i := c.Info(c.now); i.CAState != CAOpen || i.SndSsthresh != 7 {
		t.Errorf("%+v", i)
	}
}

func TestFRTONewDataHeldBack(t *testing.T) {
	c := established(t, nil, "")
	c.write(5000)
	c.drain()
	c.SetCork(c.now, true)
	c.write(100)
	c.wantIdle()
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1:1001 ack 1")
	c.send("A 1 ack 1001")
	c.want("A 1001:2001 ack 1") // the next segment is retransmitted, since new data is held back by the cork
}
