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
	c.reads = false
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001")
	c.send("PA 2001:2011 ack 1")
	c.send("PA 2011:2021 ack 1")
	c.wantTimer(40 * ms) // the delay counts from the first segment that is not acknowledged
	c.want("A 1 ack 2021")
}

func TestAckRidesOnData(t *testing.T) {
	c := established(t, nil, "")
	c.reads = false
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
	c.reads = false
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
	c.wantIdle() // waits for the next data of the program, which may carry the acknowledgment
	c.wantTimer(40 * ms)
	c.want("A 11 ack 21")
}

func TestAcksAreQuickAgainAfterPause(t *testing.T) {
	c := established(t, nil, "")
	c.reads = false
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
	c.wantIdle() // the next reply may carry an acknowledgment, too
	c.wantTimer(40 * ms)
	c.want("A 11 ack 21")
}

func TestQuickAckCanBeSet(t *testing.T) {
	c := established(t, nil, "")
	c.reads = false
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
	c.reads = false
	c.send("PA 1:11 ack 1")
	c.wantIdle()
	c.send("FA 11 ack 1")
	c.want("A 1 ack 12")
}

func TestHalfOfSmallBufferIsAcknowledgedAtOnce(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 2048, MaxReceiveBuffer: 2048}, "")
	c.send("A 1:1001 ack 1")
	c.wantIdle()
	c.send("A 1001:1101 ack 1") // the segment is acknowledged at once, since the peer has no room for a second full segment
	c.want("A 1 ack 1101")
}

func TestSeveralSegmentsInOneFrameAreAcknowledgedAtOnce(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1:4001 ack 1") // the segment is larger than our own MSS: several were merged on the way
	c.want("A 1 ack 4001")
	if got := c.Info(c.now).RcvMSS; got > 1000 {
		t.Errorf("a frame of 4000 bytes is taken for a segment: %d", got)
	}
}

// A peer that has nothing more to send until it gets an answer sets PSH. Like Linux's tcp_cleanup_rbuf, we
// acknowledge such data when the program has read it.
func TestPushedDataIsAcknowledgedWhenRead(t *testing.T) {
	for name, segment := range map[string]string{"full": "PA 1001:2001 ack 1", "not full": "A 1001:1501 ack 1"} {
		t.Run(name, func(t *testing.T) {
			c := established(t, nil, "")
			c.reads = false
			c.send("PA 1:1001 ack 1") // sets the known size of a full segment
			c.wantTimer(40 * ms)
			c.want("A 1 ack 1001")
			c.in.consumed = 1000
			c.Consumed(c.now)
			c.wantIdle()
			c.send(segment)
			c.wantIdle()
			if got, want := c.Notice(), int(c.in.committed-c.in.consumed); got != want {
				t.Errorf("the owner is to tell of reads behind %d bytes, want %d", got, want)
			}
			c.in.consumed = c.in.committed - 1
			c.Consumed(c.now)
			c.wantIdle() // no acknowledgment until the program has read all data
			c.in.consumed = c.in.committed
			c.Consumed(c.now)
			c.want("A 1 ack " + itoa(1+int(c.in.committed)))
			c.wantIdle()
		})
	}
}

// If a reply is expected, it carries the acknowledgment. The acknowledgment of data that was not pushed waits
// for the second segment.
func TestReadsLeaveOtherAcksDelayed(t *testing.T) {
	c := established(t, nil, "")
	c.reads = false
	c.send("A 1:1001 ack 1") // a full segment without PSH
	c.in.consumed = 1000
	c.Consumed(c.now)
	c.wantIdle()
	c.write(50)
	c.want("PA 1:51 ack 1001") // an answer of the program: the connection counts as interactive from now on
	c.send("PA 1001:1011 ack 51")
	c.in.consumed = 1010
	c.Consumed(c.now)
	c.wantIdle()
	c.write(50)
	c.want("PA 51:101 ack 1011")
	c.wantIdle()
}
