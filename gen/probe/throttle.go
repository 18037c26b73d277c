package probe

import "time"

// throttle limits the sending rate to the user's rate, and below it to the rate without losses on this machine. It
// has no clock and belongs to the scheduler.
//
// Visible losses are those in our rings and in the interface. A loss shows that the machine cannot keep up. The
// rate then falls at once to three quarters of the achieved rate. Without losses it grows by a tenth per second.
// Once it is twice the achieved rate, it no longer limits anything, and probes are sent as fast as the kernel
// accepts them. This is like TCP's congestion avoidance except for the factors, because a loss here does not mean
// that others need bandwidth.
//
// Unused permits are not saved: after a pause, at most slack of them are sent together.
type throttle struct {
	most    float64 // user's limit in probes per second; 0: no limit
	rate    float64 // current limit in probes per second; 0: no limit
	granted float64 // number of probes that may be sent; may be negative
	at      time.Duration
	// State at the last check for losses.
	checked   time.Duration
	sent      uint64
	lost      uint64
	decreased uint64 // number of decreases
}

const (
	slack         = 2 * time.Millisecond // how much delay of probes is made up for
	checkEvery    = 100 * time.Millisecond
	decreaseTo    = 0.75
	increaseEvery = 1.01 // per check: a tenth per second
	slowest       = 100  // probes per second; losses at lower rates are not caused by the rate
)

func newThrottle(most float64) *throttle { return &throttle{most: most, rate: most} }

// allow returns how many of want probes may be sent at now, a time since the start of the run. If it is none, wait
// is how long to wait.
func (t *throttle) allow(now time.Duration, want int) (n int, wait time.Duration) {
	if t.rate == 0 {
		t.at = now
		return want, 0
	}
	t.granted += t.rate * (now - t.at).Seconds()
	t.granted = min(t.granted, max(1, t.rate*slack.Seconds()))
	t.at = now
	if t.granted < 1 {
		return 0, time.Duration((1 - t.granted) / t.rate * float64(time.Second))
	}
	return min(want, int(t.granted)), 0
}

// spend accounts for n probes that were sent.
func (t *throttle) spend(n int) {
	if t.rate != 0 {
		t.granted -= float64(n)
	}
}

// due reports whether it is time to check for losses.
func (t *throttle) due(now time.Duration) bool { return now-t.checked >= checkEvery }

// check adjusts the rate. sent and lost are the totals of the run so far.
func (t *throttle) check(now time.Duration, sent, lost uint64) {
	achieved := float64(sent-t.sent) / (now - t.checked).Seconds()
	if lost > t.lost {
		t.decreased++
		t.rate = max(decreaseTo*achieved, slowest)
		if t.most != 0 {
			t.rate = min(t.rate, t.most)
		}
		t.granted = min(t.granted, 0)
	} else if t.rate != 0 && t.rate != t.most {
		t.rate *= increaseEvery
		if t.most != 0 {
			t.rate = min(t.rate, t.most)
		} else if t.rate > 2*achieved && achieved > slowest {
			t.rate = 0
		}
	}
	t.checked, t.sent, t.lost = now, sent, lost
}
