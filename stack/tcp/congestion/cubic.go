package congestion

import "math"

// cubic is the congestion control of RFC 9438. The window grows as a cubic function of the time since the
// last reduction: fast at first, flat near the window at which loss occurred, then fast again to probe for
// more. Growth therefore does not depend on the round trip time. Where it would be slower than RFC 5681, it
// follows RFC 5681 (the Reno-friendly region).
//
// Windows are float64 in units of segments, as in the RFC. A product that is a term of a sum is converted
// explicitly. The conversion prevents fused multiply-add, so all machines get the same result.
type cubic struct {
	start hystart

	epoch    Time    // time at which congestion avoidance began; 0: it has not begun
	k        float64 // time from epoch until the window reaches wMax, in seconds
	wMax     float64 // window before the last reduction, lowered by fast convergence
	reno     float64 // window that RFC 5681 would have (W_est)
	prior    float64 // window before the last reduction (cwnd_prior)
	fraction float64 // growth of the window of less than a byte, carried to the next acknowledgment

	undoMax, undoK float64 // values of wMax and k before the last Reduce
	undoEpoch      Time
}

const (
	cubicC    = 0.4 // constant C in segments per second cubed (RFC 9438 section 5.1)
	cubicBeta = 0.7 // multiplicative decrease factor (RFC 9438 section 4.6)
	// cubicAlpha gives the Reno-friendly window the average of RFC 5681 for this beta (RFC 9438 section 4.3).
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// NewCubic returns the congestion control of RFC 9438.
func NewCubic() Control { return &cubic{} }

func (c *cubic) Name() string { return "cubic" }

func (c *cubic) Acked(w *Window, a Ack) {
	n := c.start.acked(w, a)
	if n == 0 {
		return
	}
	mss := float64(w.MSS)
	cwnd, acked := float64(w.Size)/mss, float64(n)/mss
	if c.epoch == 0 {
		c.begin(a.Now, cwnd)
	}
	target := c.at((a.Now - c.epoch + a.SRTT).Seconds())
	target = min(max(target, cwnd), 1.5*cwnd) // the window grows by at most half in a round trip (RFC 9438 section 4.2)

	alpha := cubicAlpha
	if c.reno >= c.prior {
		alpha = 1
	}
	c.reno += alpha * acked / cwnd // growth of the Reno-friendly window (RFC 9438 section 4.3)
	grow := (target - cwnd) / cwnd * acked
	if c.at((a.Now - c.epoch).Seconds()) < c.reno {
		grow = max(c.reno-cwnd, 0)
	}
	c.fraction += float64(grow * mss)
	whole := math.Floor(c.fraction)
	c.fraction -= whole
	w.Size += uint32(min(whole, float64(MaxWindow-min(w.Size, MaxWindow))))
}

// begin starts congestion avoidance at the window cwnd (RFC 9438 section 4.2).
func (c *cubic) begin(now Time, cwnd float64) {
	c.epoch = max(now, 1)
	c.reno = cwnd
	if cwnd < c.wMax {
		c.k = math.Cbrt((c.wMax - cwnd) / cubicC)
	} else {
		c.k, c.wMax = 0, cwnd
	}
}

// at returns the value of the cubic function t seconds after the epoch (RFC 9438,
// equation 1).
func (c *cubic) at(t float64) float64 {
	d := t - c.k
	return float64(cubicC*d*d*d) + c.wMax
}

// Reduce implements RFC 9438 section 4.6, with fast convergence (section 4.7): a flow that did not reach its last
// maximum leaves room for other flows.
func (c *cubic) Reduce(w *Window, now Time, flight uint32) uint32 {
	c.start.leave()
	c.undoMax, c.undoK, c.undoEpoch = c.wMax, c.k, c.epoch
	cwnd := float64(w.Size) / float64(w.MSS)
	if cwnd < c.wMax {
		c.wMax = cwnd * (1 + cubicBeta) / 2
	} else {
		c.wMax = cwnd
	}
	c.prior = cwnd
	c.epoch, c.fraction = 0, 0
	return w.floor(uint32(float64(w.Size) * cubicBeta))
}

// Timeout implements RFC 9438 section 4.8: slow start comes first, and the epoch begins after it.
func (c *cubic) Timeout(w *Window, now Time) { c.epoch = 0 }

// Undo implements RFC 9438 section 4.9.
func (c *cubic) Undo(w *Window, now Time) {
	c.wMax, c.k, c.epoch = c.undoMax, c.undoK, c.undoEpoch
	c.start.undo(w)
}

// Restart shifts the epoch by the idle time, so that the window does not grow for time without traffic (RFC 9438
// section 4.2, on application-limited periods).
func (c *cubic) Restart(w *Window, now, idle Time) {
	c.start.restart()
	if c.epoch > 0 {
		c.epoch = min(c.epoch+idle, now)
	}
}
