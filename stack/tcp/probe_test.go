package tcp

import (
	"testing"
)

// The tests of this file check the tail loss probe (RFC 8985 section 7).

func TestTailLossProbe(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(3000)
	c.drain()
	c.wantTimer(21 * ms) // twice the smoothed round trip time, plus a tick of the timer
	c.want("PA 2001:3001 ack 1")
	c.wantCount(TailProbes, 1)
	c.wantIdle()
	c.advance(10 * ms)
	c.send("A 1 ack 1 <sack 2001-3001>") // only the probe, a copy of the last segment, arrived
	c.want("A 1:1001 ack 1")             // the SACK reveals the loss without a timeout
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
	c.want("A 3001:4001 ack 1") // the probe is new data if there is any, even beyond the congestion window
	c.want("PA 4001:5001 ack 1")
	c.wantIdle()
	c.wantCount(TailProbes, 1)
	c.send("A 1 ack 5001")
	if c.window.Size < 3000 {
		t.Error("the window was reduced, though nothing was lost")
	}
}

func TestTailLossProbeIsWhatNoReceiverHolds(t *testing.T) {
	// The acknowledgment of a single segment is delayed; two segments are acknowledged at once.
	for _, burst := range []int{0, 64 << 10} {
		c := established(t, &Config{InitialWindow: 3}, ", sackOK")
		c.burst = burst
		c.write(100_000)
		c.drain()
		c.wantTimer(21 * ms)
		if n := c.drain(); c.flight() != 5000 {
			t.Errorf("frames of %d: %d sent, %d bytes in flight; want 5000", burst, n, c.flight())
		}
		c.wantCount(TailProbes, 1)
	}
}

func TestTailLossProbeStopsAtTheWindow(t *testing.T) {
	c := established(t, &Config{InitialWindow: 3}, ", sackOK")
	c.write(100_000)
	c.drain()
	c.snd.wnd = 4000 // the peer's window has room for one segment more: 3000 bytes are in flight
	c.wantTimer(21 * ms)
	c.want("A 3001:4001 ack 1")
	c.wantIdle()
	c.advance(10 * ms)
	c.send("A 1 ack 4001")
	c.wantCount(TailProbes, 1)
}

func TestTailLossProbeOfSingleSegmentWaitsForDelayedAck(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.write(500)
	c.want("PA 1:501 ack 1")
	c.wantTimer(210 * ms) // the probe is never later than the retransmission timeout, which it replaces
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
	// RFC 8985 section 7.4: no duplicate was reported, so the last segment had been lost. The window must shrink,
	// although no other sign of the loss appeared.
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
	c.send("A 1 ack 3001 <sack 2001-3001>") // D-SACK: the probe arrived twice, so its first copy was not lost
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

func TestProbeInRecovery(t *testing.T) {
	// Either the retransmission is lost, or the only acknowledgment, which would cover the retransmission and all data
	// after it.
	c := sending(t, nil, ", sackOK", 4)
	c.send("A 1 ack 1 <sack 1001-4001>")
	c.want("A 1:1001 ack 1")
	c.drain()
	sent := c.snd.nxt
	c.wantTimer(21 * ms)
	c.poll()
	c.drain()
	c.wantCount(TailProbes, 1)
	if n := c.snd.nxt.Sub(sent); n != 2000 {
		t.Errorf("%d bytes of new data for a probe, want 2000", n)
	}
	size := c.window.Threshold
	c.advance(10 * ms)
	c.send("A 1 ack 1 <sack 1001-" + itoa(c.snd.nxt-testISS) + ">") // SACK reports all data but the retransmission
	c.advance(3 * ms)
	c.want("A 1:1001 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack " + itoa(c.snd.nxt-testISS))
	c.wantCount(Timeouts, 0)
	if c.window.Threshold != size {
		t.Errorf("the threshold came down from %d to %d for one loss", size, c.window.Threshold)
	}
}

func TestProbeInRecoveryWithoutNewData(t *testing.T) {
	// In recovery, the probe sends the first missing segment and not the last one.
	c := established(t, nil, ", sackOK")
	c.write(4000)
	c.drain()
	c.advance(10 * ms)
	c.send("A 1 ack 1 <sack 1001-4001>")
	c.want("A 1:1001 ack 1")
	c.wantTimer(21 * ms) // at once: a peer does not delay its answer to data that fills a hole
	c.want("A 1:1001 ack 1")
	c.wantIdle()
	c.wantCount(TailProbes, 1)
	c.wantTimer(210 * ms)
	c.want("A 1:1001 ack 1")
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
