package timer

import (
	"runtime"
	"sync"
	"time"

	"loam/abi/linux"
)

// cpuTimer is a timer that measures the CPU time of the process.
type cpuTimer struct {
	now    func() time.Duration // returns the CPU time of the process
	notify func(n uint64)

	mu       sync.Mutex // guards the fields below
	at       time.Duration
	interval time.Duration
	bell     *time.Timer
}

// leastLook is the minimum time between two reads of the CPU time.
const leastLook = time.Millisecond

func (t *cpuTimer) Close() { t.Set(Setting{}, false) }

func (t *cpuTimer) Get() Setting {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Setting{Interval: linux.NanoTimespec(int64(t.interval))}
	if t.at != 0 {
		s.Value = linux.NanoTimespec(int64(max(t.at-t.now(), 1)))
	}
	return s
}

func (t *cpuTimer) Set(s Setting, absolute bool) Setting {
	old := t.Get()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bell != nil {
		t.bell.Stop()
	}
	t.at, t.interval = spanOf(s.Value), spanOf(s.Interval)
	if t.at == 0 {
		return old
	}
	if !absolute {
		t.at += t.now()
	}
	t.wait()
	return old
}

// wait schedules a call of look for the earliest time at which the timer can expire. The caller holds mu.
func (t *cpuTimer) wait() {
	d := max((t.at-t.now())/time.Duration(runtime.GOMAXPROCS(0)), leastLook)
	if t.bell == nil {
		t.bell = time.AfterFunc(d, t.look)
	} else {
		t.bell.Reset(d)
	}
}

func (t *cpuTimer) look() {
	t.mu.Lock()
	now, n := t.now(), uint64(0)
	switch {
	case t.at == 0:
	case now < t.at:
		t.wait()
	case t.interval == 0:
		t.at, n = 0, 1
	default:
		n = 1 + uint64((now-t.at)/t.interval)
		t.at += time.Duration(n) * t.interval
		t.wait()
	}
	t.mu.Unlock()
	if n > 0 {
		t.notify(n)
	}
}
