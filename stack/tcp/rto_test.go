package tcp

import (
	"testing"
	"time"
)

// The retransmission timeout (RFC 6298).

func TestRTOFirstMeasurement(t *testing.T) {
	c := established(t, nil, "") // the SYN-ACK was answered after 10 ms
	i := c.Info(c.now)
	if i.RTT != 10*ms || i.RTTVar != 5*ms || i.RTO != 210*ms {
		t.Errorf("RTT %v, variance %v, RTO %v; want 10 ms, 5 ms, 210 ms", i.RTT, i.RTTVar, i.RTO)
	}
}

func TestRTOEstimator(t *testing.T) {
	c := Conn{cfg: &Config{MinRTO: ms}}
	r := &c.rtt
	r.init(c.cfg)
	if c.rto() != time.Second {
		t.Errorf("RTO before a measurement is %v, want 1 s (2.1)", c.rto())
	}
	r.sample(c.cfg, 0, 100*ms, 1)
	if c.rto() != 300*ms { // R + 4 R/2 with R = 100 ms (RFC 6298, 2.2)
		t.Errorf("RTO is %v, want 300 ms", c.rto())
	}
	r.sample(c.cfg, 0, 200*ms, 1) // RTTVAR 3/4 50 + 1/4 100, SRTT 7/8 100 + 1/8 200 (2.3)
	if r.rttvar != 62500*time.Microsecond || r.srtt != 112500*time.Microsecond {
		t.Errorf("SRTT %v, RTTVAR %v", r.srtt, r.rttvar)
	}
	for range 1000 {
		r.sample(c.cfg, 0, 100*ms, 1)
	}
	if c.rto() < 101*ms || c.rto() > 102*ms {
		t.Errorf("RTO of a steady path is %v", c.rto())
	}
	// RFC 7323 appendix G: many samples in a round trip have the weight of one.
	one, many := *r, *r
	one.sample(c.cfg, 0, 200*ms, 1)
	for range 10 {
		many.sample(c.cfg, 0, 200*ms, 10)
	}
	if d := one.srtt - many.srtt; d < -3*ms || d > 3*ms {
		t.Errorf("SRTT %v after one sample, %v after ten of ten", one.srtt, many.srtt)
	}
}

// If one acknowledgment covers a whole flight, it is the only measurement of the round trip and has full
// weight.
func TestOneAckForManySegmentsMeasures(t *testing.T) {
	c := established(t, nil, "") // the SYN-ACK was answered after 10 ms
	c.burst = 64000
	c.write(10000)
	c.drain()
	c.advance(50 * ms)
	c.send("A 1 ack 10001")
	if i := c.Info(c.now); i.RTT != 15*ms { // the new SRTT: 7/8 10 + 1/8 50
		t.Errorf("RTT %v, want 15 ms", i.RTT)
	}
}

func TestMinRTTExpires(t *testing.T) {
	var r rtt
	cfg := &Config{}
	r.init(cfg)
	r.sample(cfg, 0, 10*ms, 1)
	r.sample(cfg, time.Minute, 50*ms, 1)
	if r.min != 10*ms {
		t.Errorf("least RTT is %v", r.min)
	}
	r.sample(cfg, 6*time.Minute, 50*ms, 1)
	if r.min != 50*ms {
		t.Errorf("least RTT is still %v after the path has changed", r.min)
	}
}

func TestRetransmissionTimeout(t *testing.T) {
	c := established(t, nil, "")
	c.write(3000)
	c.drain()
	c.wantTimer(210 * ms)
	c.want("A 1:1001 ack 1") // the earliest unacknowledged segment (RFC 6298, 5.4)
	c.wantIdle()             // only one segment is sent, since the congestion window is one segment
	c.wantTimer(420 * ms)    // the timeout is doubled (RFC 6298, 5.5)
	c.want("A 1:1001 ack 1")
	c.wantTimer(840 * ms)
	c.want("A 1:1001 ack 1")
	i := c.Info(c.now)
	if i.CAState != CALoss || i.Retransmits != 3 || i.Backoff != 3 || i.SndSsthresh != 7 || i.TotalRetrans != 3 {
		t.Errorf("%+v", i)
	}
	c.wantCount(Timeouts, 3)
	c.advance(10 * ms)
	c.send("A 1 ack 1001")
	// Karn: a retransmitted segment gives no measurement, so the backoff remains (RFC 6298 section 5) until new data is
	// measured.
	if i := c.Info(c.now); i.Backoff != 3 || i.Retransmits != 0 {
		t.Errorf("%+v", i)
	}
}

func TestTimerIsRestartedByNewAck(t *testing.T) {
	c := established(t, nil, "")
	c.write(3000)
	c.drain()
	c.advance(200 * ms)
	c.send("A 1 ack 1001") // restarts the timer (RFC 6298, 5.3)
	rto := c.Info(c.now).RTO
	c.wantTimer(rto)
	c.want("A 1001:2001 ack 1")
}

func TestTimerStopsWhenAllIsAcknowledged(t *testing.T) {
	c := established(t, nil, "")
	c.write(3000)
	c.drain()
	c.send("A 1 ack 3001") // stops the timer (RFC 6298, 5.2)
	c.wantSilence(time.Hour)
}

func TestTimerIsNotTouchedByOldAck(t *testing.T) {
	c := established(t, nil, "")
	c.write(3000)
	c.drain()
	c.advance(200 * ms)
	c.send("A 1 ack 1")
	c.wantTimer(10 * ms)
}

func TestR2(t *testing.T) {
	c := established(t, &Config{Retries: 4}, "")
	c.write(100)
	c.want("PA 1:101 ack 1")
	for range 4 {
		c.wantTimer(c.timers[timerRTO] - c.now)
		c.want("PA 1:101 ack 1")
	}
	c.advance(time.Minute)
	c.wantEnd(ErrTimeout)
}

func TestDefaultR2IsLongEnough(t *testing.T) {
	c := established(t, nil, "")
	c.write(100)
	c.want("PA 1:101 ack 1")
	start := c.now
	for c.State() != Closed {
		c.advance(c.Deadline() - c.now)
		c.drain()
	}
	if d := c.now - start; d < 100*time.Second { // at least 100 seconds (RFC 9293 section 3.8.3, SHLD-10)
		t.Errorf("gave up after %v", d)
	}
	c.wantEnd(ErrTimeout)
}

func TestUserTimeout(t *testing.T) {
	c := established(t, nil, "")
	c.SetUserTimeout(c.now, 2*time.Second)
	c.write(100)
	c.want("PA 1:101 ack 1")
	start := c.now
	for c.State() != Closed {
		c.advance(c.Deadline() - c.now)
		c.drain()
	}
	c.wantEnd(ErrTimeout)
	if d := c.now - start; d != 2*time.Second {
		t.Errorf("ended after %v", d)
	}
}

func TestSoftErrorIsToldWhenGivingUp(t *testing.T) {
	c := established(t, &Config{Retries: 1}, "")
	c.write(100)
	c.want("PA 1:101 ack 1")
	if !c.ICMP(c.now, ICMPUnreachable, testISS+1, 0) {
		t.Error("message not believed")
	}
	c.wantState(Established) // a soft error MUST NOT abort the connection (RFC 9293 section 3.9.2.2)
	c.wantTimer(210 * ms)
	c.want("PA 1:101 ack 1")
	c.advance(time.Second)
	c.wantEnd(ErrUnreachable)
}

func TestOwnerWithoutRoomDoesNotCountAsLoss(t *testing.T) {
	c := established(t, &Config{Retries: 2}, "")
	c.write(100)
	c.want("PA 1:101 ack 1")
	c.advance(time.Minute) // timers run, but nothing can be sent
	c.wantState(Established)
	c.wantCount(Timeouts, 1)
	c.want("PA 1:101 ack 1")
	c.send("A 1 ack 101")
	c.wantIdle()
}

func TestRenegingPeer(t *testing.T) {
	// RFC 2018 section 8: after a timeout, data that was selectively but not cumulatively acknowledged is
	// retransmitted.
	c := established(t, nil, ", sackOK")
	c.write(4000)
	c.drain()
	c.send("A 1 ack 1 <sack 1001-4001>")
	c.want("A 1:1001 ack 1")
	c.send("A 1 ack 1001") // the peer has dropped the data that it had acknowledged selectively
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1001:2001 ack 1")
	c.send("A 1 ack 2001")
	c.want("A 2001:3001 ack 1")
	c.want("PA 3001:4001 ack 1")
	c.send("A 1 ack 4001")
	c.wantIdle()
}

func TestLostRangesAreJoined(t *testing.T) {
	c := established(t, &Config{NoDelay: true}, "")
	for range 10 {
		c.write(50)
		c.poll()
	}
	c.wantTimer(210 * ms)
	c.want("PA 1:501 ack 1") // the ten small segments are retransmitted as one
	c.send("A 1 ack 501")
	c.wantIdle()
}

func TestTimeoutInFrames(t *testing.T) {
	c := established(t, &Config{InitialWindow: 20}, ", sackOK")
	c.burst = 64000
	c.write(9000)
	c.want("PA 1:9001 ack 1")
	c.advance(c.timers[timerProbe] - c.now)
	c.want("PA 8001:9001 ack 1") // the tail loss probe
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1:1001 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 1001")
	c.want("A 1001:2001 ack 1")
	c.want("A 2001:3001 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 3001")
	c.want("A 3001:5001 ack 1") // two segments in one frame, as before the loss
	c.want("A 5001:7001 ack 1")
	c.send("A 1 ack 9001")
	c.wantIdle()
}
