package tcp

import (
	"testing"
	"time"
)

// Delayed acknowledgments (RFC 9293 section 3.8.6.3).

func TestEverySecondFullSegmentIsAcknowledged(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1:1001 ack 1")
	c.wantIdle()
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001")
	c.send("A 2001:3001 ack 1")
	c.wantIdle()
	c.wantTimer(40 * ms)
	c.want("A 1 ack 3001")
	c.wantIdle()
}

func TestSmallSegmentsAreAcknowledgedByTimer(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001")
	c.send("PA 2001:2011 ack 1")
	c.send("PA 2011:2021 ack 1")
	c.wantTimer(40 * ms) // from the first
	c.want("A 1 ack 2021")
}

func TestAckRidesOnData(t *testing.T) {
	c := established(t, nil, "")
	c.send("PA 1:101 ack 1")
	c.wantIdle()
	c.write(50)
	c.want("PA 1:51 ack 101")
	c.wantIdle()
	c.send("A 101 ack 51")
	c.wantSilence(time.Hour)
}

func TestAcksAreQuickAtStart(t *testing.T) {
	c := accept(t, nil, "S 0 win 50000 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	for i := range 20 {
		c.send("PA " + itoa(1+i*10) + ":" + itoa(11+i*10) + " ack 1")
		if i < quickAcks {
			c.want("A 1 ack " + itoa(11+i*10))
		} else {
			c.wantIdle()
		}
	}
}

func TestAnswerEndsTheHurryAtStart(t *testing.T) {
	c := accept(t, nil, "S 0 win 50000 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.send("PA 1:11 ack 1")
	c.want("A 1 ack 11")
	c.advance(5 * ms)
	c.write(10)
	c.want("PA 1:11 ack 11")
	c.send("PA 11:21 ack 11")
	c.wantIdle() // for the next answer
	c.wantTimer(40 * ms)
	c.want("A 11 ack 21")
}

func TestAcksAreQuickAgainAfterPause(t *testing.T) {
	c := established(t, nil, "")
	c.send("PA 1:11 ack 1")
	c.wantIdle()
	c.advance(5 * time.Second)
	c.want("A 1 ack 11")
	c.send("PA 11:21 ack 1")
	c.want("A 1 ack 21")
}

func TestInteractiveConnectionIsNotQuick(t *testing.T) {
	c := established(t, nil, "")
	c.send("PA 1:11 ack 1")
	c.write(10)
	c.want("PA 1:11 ack 11") // an answer carries the ACK
	c.send("A 11 ack 11")
	c.advance(5 * time.Second)
	c.send("PA 11:21 ack 11")
	c.wantIdle() // so it is worth waiting for the next answer
	c.wantTimer(40 * ms)
	c.want("A 11 ack 21")
}

func TestQuickAckCanBeSet(t *testing.T) {
	c := established(t, nil, "")
	c.send("PA 1:11 ack 1")
	c.wantIdle()
	c.SetQuickAck(c.now, true)
	c.want("A 1 ack 11")
	c.send("PA 11:21 ack 1")
	c.want("A 1 ack 21")
	c.SetQuickAck(c.now, false)
	c.send("PA 21:31 ack 1")
	c.wantIdle()
}

func TestFinIsAcknowledgedAtOnce(t *testing.T) {
	c := established(t, nil, "")
	c.send("PA 1:11 ack 1")
	c.wantIdle()
	c.send("FA 11 ack 1")
	c.want("A 1 ack 12")
}

func TestHalfOfSmallBufferIsAcknowledgedAtOnce(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 2048, MaxReceiveBuffer: 2048}, "")
	c.send("A 1:1001 ack 1")
	c.wantIdle()
	c.send("A 1001:1101 ack 1") // the peer has not room for a second full segment
	c.want("A 1 ack 1101")
}

func TestSeveralSegmentsInOneFrameAreAcknowledgedAtOnce(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1:4001 ack 1") // more than our own MSS: put together on the way
	c.want("A 1 ack 4001")
	if got := c.Info(c.now).RcvMSS; got > 1000 {
		t.Errorf("a frame of 4000 bytes is taken for a segment: %d", got)
	}
}
