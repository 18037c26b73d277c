package tcp

import (
	"testing"
)

// Tail loss probe (section 7).

func TestTailLossProbe(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(3000)
	c.drain()
	c.wantTimer(21 * ms) // 2 SRTT, and a tick
	c.want("PA 2001:3001 ack 1")
	c.wantCount(TailProbes, 1)
	c.wantIdle()
	c.advance(10 * ms)
	c.send("A 1 ack 1 <sack 2001-3001>") // the tail was lost but for the probe
	c.want("A 1:1001 ack 1")             // so loss is found without a timeout
	c.send("A 1 ack 1001 <sack 2001-3001>")
	c.want("A 1001:2001 ack 1")
	c.wantCount(Timeouts, 0)
	c.wantCount(FastRecoveries, 1)
}

func TestTailLossProbeOfNewData(t *testing.T) {
	c := established(t, &Config{InitialWindow: 3}, ", sackOK")
	c.write(5000)
	if n := c.drain(); n != 3 {
		t.Fatal(n)
	}
	c.wantTimer(21 * ms)
	c.want("A 3001:4001 ack 1") // new data if there is any, whatever the window
	c.wantIdle()
	c.send("A 1 ack 4001")
	if c.window.Size < 3000 {
		t.Error("the window was reduced, though nothing was lost")
	}
}

func TestTailLossProbeOfSingleSegmentWaitsForDelayedAck(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(500)
	c.want("PA 1:501 ack 1")
	c.wantTimer(210 * ms) // never later than the timeout, in place of it
	c.want("PA 1:501 ack 1")
	c.wantCount(TailProbes, 1)
	c.wantCount(Timeouts, 0)
	c.wantTimer(210 * ms)
	c.want("PA 1:501 ack 1")
	c.wantCount(Timeouts, 1)
}

func TestTailLossProbeThatRepairedALoss(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(3000)
	c.drain()
	c.wantTimer(21 * ms)
	c.want("PA 2001:3001 ack 1")
	c.send("A 1 ack 3001")
	c.write(1000)
	c.poll()
	c.advance(10 * ms)
	c.send("A 1 ack 4001")
	// Section 7.4: nothing was reported as a duplicate, so the last segment had
	// been lost, and the window must come down though nobody noticed.
	if i := c.Info(c.now); i.SndSsthresh != 7 || i.SndCwnd != 7 {
		t.Errorf("%+v", i)
	}
}

func TestTailLossProbeForNothing(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(3000)
	c.drain()
	c.wantTimer(21 * ms)
	c.want("PA 2001:3001 ack 1")
	c.send("A 1 ack 3001")
	c.send("A 1 ack 3001 <sack 2001-3001>") // D-SACK: it had arrived
	c.write(1000)
	c.poll()
	c.advance(10 * ms)
	c.send("A 1 ack 4001")
	if i := c.Info(c.now); i.SndSsthresh != 1<<31-1 {
		t.Errorf("%+v", i)
	}
}

func TestOneProbeOnly(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(3000)
	c.drain()
	c.wantTimer(21 * ms)
	c.want("PA 2001:3001 ack 1")
	c.wantTimer(210 * ms)
	c.want("A 1:1001 ack 1")
	c.wantCount(TailProbes, 1)
	c.wantCount(Timeouts, 1)
}

func TestNoProbeWithoutSACK(t *testing.T) {
	c := established(t, nil, "")
	c.write(3000)
	c.drain()
	c.wantTimer(210 * ms)
	c.wantCount(TailProbes, 0)
}

func TestProbeOfFin(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(2500)
	c.CloseWrite(c.now)
	c.drain()
	c.wantTimer(21 * ms)
	c.want("FPA 2001:2501 ack 1")
}
