package timer

import (
	"runtime"
	"sync"
	"time"

	"loam/abi/linux"
)

// cpuTimer is a timer that measures CPU time of a process or a thread.
type cpuTimer struct {
	thread bool // the clock measures a thread, which uses at most one CPU at once
	// now reads the clock. It takes locks of the Set's owner, so it is called without mu.
	now    func() (time.Duration, bool)
	notify func(n uint64)

	mu       sync.Mutex // guards the fields below
	at       time.Duration
	interval time.Duration
	bell     *time.Timer
	closed   bool          // the timer can no longer be armed
	seen     time.Duration // CPU time at the last look
	pause    time.Duration // minimum time until the next look
}

// Minimum time between two looks at the CPU time. It is leastLook, a tick of Linux, while the clock advances. It is doubled, up to
// mostLook, each time that the clock has not advanced.
const (
	leastLook = 4 * time.Millisecond
	mostLook  = 16 * time.Millisecond
)

// newCPUTimer returns a timer that measures a clock with an ID.
func newCPUTimer(id int, read CPUClock, notify func(n uint64)) *cpuTimer {
	_, thread, _ := ParseClock(id)
	return &cpuTimer{thread: thread, now: func() (time.Duration, bool) { return read(id) }, notify: notify}
}

// Close stops the timer. The owner may hold its locks.
func (t *cpuTimer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.stop()
}

// stop stops the timer. The caller holds mu.
func (t *cpuTimer) stop() {
	t.at = 0
	if t.bell != nil {
		t.bell.Stop()
	}
}

// Get returns the setting, which is zero if the clock has disappeared.
func (t *cpuTimer) Get() Setting {
	now, ok := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok {
		return Setting{}
	}
	return t.setting(now)
}

// setting returns the setting at a CPU time. The caller holds mu.
func (t *cpuTimer) setting(now time.Duration) Setting {
	s := Setting{Interval: linux.NanoTimespec(int64(t.interval))}
	if t.at != 0 {
		s.Value = linux.NanoTimespec(int64(max(t.at-now, 1)))
	}
	return s
}

func (t *cpuTimer) Set(s Setting, flags int) (Setting, linux.Errno) {
	now, ok := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return Setting{}, linux.EINVAL
	case !ok:
		return Setting{}, linux.ESRCH
	}
	old := t.setting(now)
	t.stop()
	t.interval = spanOf(s.Interval)
	if at := spanOf(s.Value); at != 0 {
		if t.at = at; flags&linux.TFD_TIMER_ABSTIME == 0 {
			t.at += now
		}
		t.seen, t.pause = now, leastLook
		t.wait()
	}
	return old, 0
}

// wait schedules a call of look for the earliest time at which the timer can expire, but not before pause has passed. The caller
// holds mu.
func (t *cpuTimer) wait() {
	d := t.at - t.seen
	if !t.thread {
		d /= time.Duration(runtime.GOMAXPROCS(0))
	}
	d = max(d, t.pause)
	if t.bell == nil {
		t.bell = time.AfterFunc(d, t.look)
	} else {
		t.bell.Reset(d)
	}
}

// look notifies if the timer has expired. The timer stops if its clock has disappeared.
func (t *cpuTimer) look() {
	now, ok := t.now()
	if n := t.expirations(now, ok); n > 0 {
		t.notify(n)
	}
}

// expirations returns how often the timer has expired, and schedules the next call of look.
func (t *cpuTimer) expirations(now time.Duration, ok bool) (n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pause = min(2*t.pause, mostLook); now != t.seen {
		t.seen, t.pause = now, leastLook
	}
	switch {
	case t.at == 0 || !ok:
	case now < t.at:
		t.wait()
	case t.interval == 0:
		t.at, n = 0, 1
	default:
		n = 1 + uint64((now-t.at)/t.interval)
		t.at += time.Duration(n) * t.interval
		t.wait()
	}
	return n
}
