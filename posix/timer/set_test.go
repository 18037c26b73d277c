package timer

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
)

// threadClock is the ID of the CPU clock of thread 7.
const threadClock = ^7<<3 | clockOfThread | 2

// once is the setting of a timer that expires once.
func once(d time.Duration) Setting { return Setting{Value: linux.NanoTimespec(int64(d))} }

// cpuTime is a clock of CPU time that a test sets.
type cpuTime struct {
	now   func() time.Duration
	ended bool
	reads atomic.Int32
}

// set returns a set of timers that measure the clock, and the channel to which they send their signals.
func (c *cpuTime) set() (*Set, chan Expiry) {
	sent, begin := make(chan Expiry, 100), time.Now()
	all := &Set{}
	all.Init(func(int) time.Duration { return time.Since(begin) }, nil)
	all.SetOwner(func(e Expiry) (bool, linux.Errno) {
		sent <- e
		return false, 0
	}, func(int) (time.Duration, bool) {
		c.reads.Add(1)
		return c.now(), !c.ended
	})
	return all, sent
}

// create makes a timer that sends SIGALRM.
func create(t *testing.T, all *Set, clock int) int32 {
	t.Helper()
	id, errno := all.Create(clock, Event{Notify: linux.SIGEV_SIGNAL, Signal: linux.SIGALRM})
	if errno != 0 {
		t.Fatal(errno)
	}
	return id
}

// arm starts a timer.
func arm(t *testing.T, all *Set, id int32, s Setting) {
	t.Helper()
	if _, errno := all.SetTime(id, 0, s); errno != 0 {
		t.Fatal(errno)
	}
}

// When a thread has ended, the timer of its clock has no setting, and cannot be set.
func TestEndedThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := cpuTime{now: func() time.Duration { return time.Second }}
		all, _ := clock.set()
		id := create(t, all, threadClock)
		arm(t, all, id, Setting{Value: linux.Timespec{Sec: 1}, Interval: linux.Timespec{Sec: 1}})
		clock.ended = true
		if s, errno := all.GetTime(id); s != (Setting{}) || errno != 0 {
			t.Errorf("GetTime: %+v, %v", s, errno)
		}
		if _, errno := all.SetTime(id, 0, once(time.Second)); errno != linux.ESRCH {
			t.Errorf("SetTime: %v, want ESRCH", errno)
		}
		if errno := all.Delete(id); errno != 0 {
			t.Errorf("Delete: %v", errno)
		}
	})
}

// A call of SetTime that has found its timer before Delete removes it does not arm the timer.
func TestSetTimeDuringDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		clock := cpuTime{now: func() time.Duration { return time.Since(begin) }}
		all, sent := clock.set()
		for _, c := range []int{threadClock, linux.CLOCK_MONOTONIC} {
			id := create(t, all, c)
			found, _ := all.timer(id)
			all.Delete(id)
			if _, errno := found.clock.Set(once(time.Second), 0); errno != linux.EINVAL {
				t.Errorf("clock %d: %v, want EINVAL", c, errno)
			}
		}
		time.Sleep(10 * time.Second)
		if len(sent) != 0 {
			t.Errorf("%d signals of deleted timers", len(sent))
		}
	})
}

// A timer whose clock stands still reads it at most every 16 ms. When the clock advances again, the timer expires.
func TestIdleClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int64
		clock := cpuTime{now: func() time.Duration { return time.Duration(now.Load()) }}
		all, sent := clock.set()
		arm(t, all, create(t, all, threadClock), once(10*time.Millisecond))
		clock.reads.Store(0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := clock.reads.Load(); n > 640 {
			t.Errorf("%d reads in 10 s", n)
		}
		now.Add(int64(5 * time.Millisecond))
		time.Sleep(mostLook)
		synctest.Wait()
		if len(sent) != 0 {
			t.Error("the timer expires too early")
		}
		now.Add(int64(5 * time.Millisecond))
		time.Sleep(mostLook)
		synctest.Wait()
		if len(sent) != 1 {
			t.Errorf("%d signals, want 1", len(sent))
		}
	})
}

// A thread uses at most one CPU, so its timer reads the clock only when it can have expired.
func TestClockOfBusyThread(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		clock := cpuTime{now: func() time.Duration { return time.Since(begin) }}
		all, sent := clock.set()
		id := create(t, all, threadClock)
		clock.reads.Store(0)
		arm(t, all, id, once(time.Second))
		time.Sleep(time.Second)
		synctest.Wait()
		if len(sent) != 1 || clock.reads.Load() != 2 {
			t.Errorf("%d signals, %d reads, want 1 and 2", len(sent), clock.reads.Load())
		}
	})
}

// The lines of fdinfo have the flags of the last setting.
func TestDetails(t *testing.T) {
	f := NewFile(linux.CLOCK_REALTIME, nil)
	defer f.Close()
	const both = linux.TFD_TIMER_ABSTIME | linux.TFD_TIMER_CANCEL_ON_SET
	for _, flags := range []int{0, linux.TFD_TIMER_ABSTIME, both, 0} {
		if _, errno := f.Set(Setting{}, flags); errno != 0 {
			t.Fatal(errno)
		}
		want := fmt.Sprintf("clockid: 0\nticks: 0\nsettime flags: 0%o\nit_value: (0, 0)\nit_interval: (0, 0)\n", flags)
		if got := f.Details(); got != want {
			t.Errorf("flags %d: %q, want %q", flags, got, want)
		}
	}
}
