package timer

import (
	"runtime"
	"sync"
	"time"

	"loam/abi/linux"
)

// cpuTimer is a timer that measures CPU time of a process or a thread.
type cpuTimer struct {
	// now reads the clock. It takes locks of the Set's owner, so it is called without mu.
	now    func() (time.Duration, bool)
	notify func(n uint64)

	mu       sync.Mutex // guards the fields below
	at       time.Duration
	interval time.Duration
	bell     *time.Timer
}

// leastLook is the minimum time between two reads of the CPU time: a tick of Linux.
const leastLook = 4 * time.Millisecond

// Close stops the timer. The owner may hold its locks.
func (t *cpuTimer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
}

// stop stops the timer. The caller holds mu.
func (t *cpuTimer) stop() {
	t.at = 0
	if t.bell != nil {
		t.bell.Stop()
	}
}

func (t *cpuTimer) Get() Setting {
	now, _ := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
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

func (t *cpuTimer) Set(s Setting, absolute bool) Setting {
	now, _ := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.setting(now)
	t.stop()
	t.interval = spanOf(s.Interval)
	if at := spanOf(s.Value); at != 0 {
		if t.at = at; !absolute {
			t.at += now
		}
		t.wait(now)
	}
	return old
}

// wait schedules a call of look for the earliest time at which the timer can expire. The caller holds mu.
func (t *cpuTimer) wait(now time.Duration) {
	d := max((t.at-now)/time.Duration(runtime.GOMAXPROCS(0)), leastLook)
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
	switch {
	case t.at == 0 || !ok:
	case now < t.at:
		t.wait(now)
	case t.interval == 0:
		t.at, n = 0, 1
	default:
		n = 1 + uint64((now-t.at)/t.interval)
		t.at += time.Duration(n) * t.interval
		t.wait(now)
	}
	return n
}
