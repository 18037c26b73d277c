package probe

import "time"

// throttle is how fast the scheduler may go: the user's rate, and below it the
// rate at which nothing is lost on this machine. It is a machine without a clock;
// the scheduler owns it.
//
// Losses that we can see are those of our own rings and of the interface; each is
// taken as a sign that the machine does not keep up, and the rate falls at once
// by a quarter of what was really achieved. Without losses it grows by a tenth a
// second, and once it is at twice what is achieved it no longer limits anything:
// then sending is as fast as the kernel takes it. That is the law of TCP's
// congestion avoidance, except for the factor: loss here is not a sign that others
// want room.
//
// Probes that wait for their turn are not saved up: after a pause, at most slack
// of them go out together.
type throttle struct {
	most    float64 // probes a second that the user allows; 0 is no limit
	rate    float64 // probes a second now; 0 is no limit
	granted float64 // probes that may go out, may be negative
	at      time.Duration
	// The last look at the losses.
	checked   time.Duration
	sent      uint64
	lost      uint64
	decreased uint64 // times
}

const (
	slack         = 2 * time.Millisecond // of probes may be made up for
	checkEvery    = 100 * time.Millisecond
	decreaseTo    = 0.75
	increaseEvery = 1.01 // per check: a tenth a second
	slowest       = 100  // probes a second, below which losses are not ours to avoid
)

func newThrottle(most float64) *throttle { return &throttle{most: most, rate: most} }

// allow returns how many of want probes may go out at now, since the run began,
// or, if that is none, how long to wait.
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

// spend accounts for n probes that went out.
func (t *throttle) spend(n int) {
	if t.rate != 0 {
		t.granted -= float64(n)
	}
}

// due reports whether it is time to look for losses.
func (t *throttle) due(now time.Duration) bool { return now-t.checked >= checkEvery }

// check takes the totals of what was sent and of what was lost so far.
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
