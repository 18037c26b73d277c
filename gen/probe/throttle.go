package probe

import "time"

// throttle limits the sending rate. The limit is the user's rate or, if that is lower, the rate at which no frames are
// lost on this machine. throttle has no clock and belongs to the scheduler.
//
// throttle considers losses in the receive rings and in the interface. Such a loss means that the machine cannot keep
// up. The rate then falls immediately to three quarters of the rate that was achieved. Without losses it grows by a
// tenth per second. When it is twice the achieved rate, the limit is removed, and probes are sent as fast as the kernel
// accepts them. This is similar to TCP's congestion avoidance. The factors differ, because a loss on this machine does
// not mean that other senders need bandwidth.
//
// Permission to send that is not used expires: after a pause, only the probes of the time slack may be sent at once.
type throttle struct {
	most    float64 // the user's limit in probes per second; 0: no limit
	rate    float64 // current limit in probes per second; 0: no limit
	granted float64 // number of probes that may be sent now; may be negative
	at      time.Duration
	// Values at the last check for losses.
	checked   time.Duration
	sent      uint64
	lost      uint64
	decreased uint64 // number of times that the rate was decreased
}

const (
	slack         = 2 * time.Millisecond // length of a delay that is made up for
	checkEvery    = 100 * time.Millisecond
	decreaseTo    = 0.75
	increaseEvery = 1.01 // factor per check, which is a tenth per second
	slowest       = 100  // probes per second; at lower rates, losses have other causes
)

func newThrottle(most float64) *throttle { return &throttle{most: most, rate: most} }

// allow returns how many probes may be sent now, at most the number want. The parameter
// now is the time since the start of the run. If no probe may be sent, the result wait is
// the time until the next one.
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

// spend records that n probes were sent.
func (t *throttle) spend(n int) {
	if t.rate != 0 {
		t.granted -= float64(n)
	}
}

// due reports whether the next check for losses is due.
func (t *throttle) due(now time.Duration) bool { return now-t.checked >= checkEvery }

// check adjusts the rate. sent and lost are the numbers of probes sent and frames lost since the start of the run.
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
