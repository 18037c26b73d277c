package tcp

import (
	"testing"
	"time"
)

// PAWS and timestamps (RFC 7323).

func TestPAWS(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	c.send("A 1:989 ack 1 <ts 8000 3600000>")
	c.advance(40 * ms)
	c.want("A 1 ack 989 <ts 3600050 8000>")
	c.send("A 989:1989 ack 1 <ts 7999 3600000>")
	c.want("A 1 ack 989 <ts 3600050 8000>") // R1: the segment is not acceptable, so it is answered and dropped
	c.wantReadable(988)
	c.wantCount(DropPAWS, 1)
	c.send("R 989 <ts 1 0>") // resets are not subject to PAWS
	c.wantEnd(ErrReset)
}

// "TSopt [...] SHOULD be sent in an <RST> segment" (RFC 7323 section 3.2).
func TestResetHasTimestamps(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	c.advance(time.Second)
	c.Abort(c.now)
	c.want("RA 1 ack 1 <ts 3601010 7010>")
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
	c.send("A 1:101 ack 1 <ts 6000 3600000>") // RFC 7323 section 5.5: TS.Recent is too old to compare
	c.wantReadable(100)
}

func TestTimestampMissing(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	c.send("A 1:101 ack 1 <nots>")
	c.wantReadable(0) // the segment SHOULD be dropped silently and MUST NOT end the connection
	c.wantIdle()
	c.wantState(Established)
	c.wantCount(DropTimestamp, 1)
	c.send("R 1 <nots>")
	c.wantEnd(ErrReset) // a reset needs no timestamp
}

func TestTimestampEchoedIsOfFirstSegmentDelayed(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	// RFC 7323 section 4.3: a delayed acknowledgment echoes the earliest timestamp, so that the peer's measurement
	// includes the delay.
	c.send("A 1:501 ack 1 <ts 7100 3600000>")
	c.send("A 501:601 ack 1 <ts 7110 3600000>")
	c.advance(40 * ms)
	c.want("A 1 ack 601 <ts 3600050 7100>")
	// The timestamp of a segment after a gap is not echoed. The timestamp of the segment that fills the gap is.
	c.send("A 701:801 ack 1 <ts 7200 3600000>")
	c.want("A 1 ack 601 <ts 3600050 7100>")
	c.send("A 601:701 ack 1 <ts 7210 3600000>")
	c.want("A 1 ack 801 <ts 3600050 7210>")
}

func TestEchoOfTimestampNeverSentIsNotMeasured(t *testing.T) {
	c := established(t, nil, ", ts 7000 0")
	c.write(100)
	c.want("PA 1:101 ack 1")
	c.advance(c.timers[timerRTO] - c.now)
	c.want("PA 1:101 ack 1")
	c.send("A 1 ack 101 <ts 8000 3700000>")
	if i := c.Info(c.now); i.RTT != 10*ms {
		t.Errorf("RTT is %v", i.RTT)
	}
}
