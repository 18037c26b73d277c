package posix

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/posix/timer"
)

// sent is a signal that a timer has sent.
type sent struct {
	expiry Expiry
	at     time.Duration
}

// withTimers returns a process whose signals are recorded. Its CPU clock runs half as fast as time.
func withTimers(t *testing.T) (*Process, func() []sent) {
	begin := time.Now()
	c := make(chan sent, 1000)
	p := New(Options{
		Credentials: Credentials{PID: 7},
		Clock: func(id int) time.Duration {
			if id == linux.CLOCK_PROCESS_CPUTIME_ID {
				return time.Since(begin) / 2
			}
			return time.Since(begin)
		},
		Sender: func(e Expiry) (bool, Errno) {
			if e.Thread > 100 {
				return false, linux.ESRCH
			}
			if e.Signal != 0 {
				c <- sent{e, time.Since(begin)}
			}
			return false, 0
		},
	})
	t.Cleanup(p.fds.RemoveAll)
	return p, func() (all []sent) {
		for {
			select {
			case s := <-c:
				all = append(all, s)
			default:
				return all
			}
		}
	}
}

func after(value, interval time.Duration) TimerSetting {
	return TimerSetting{Value: linux.NanoTimespec(int64(value)), Interval: linux.NanoTimespec(int64(interval))}
}

// setitimer sends a signal at the end of each interval, by time or by CPU time; a new setting returns the old.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, got := withTimers(t)
		if old, errno := p.Timers().SetInterval(linux.ITIMER_REAL, after(3*time.Second, time.Second)); errno != 0 || old != after(0, 0) {
			t.Errorf("%+v, %v", old, errno)
		}
		time.Sleep(4500 * time.Millisecond)
		old, errno := p.Timers().SetInterval(linux.ITIMER_REAL, after(0, 0))
		if errno != 0 || old != after(500*time.Millisecond, time.Second) {
			t.Errorf("%+v, %v", old, errno)
		}
		time.Sleep(10 * time.Second)
		want := []sent{{Expiry{Signal: linux.SIGALRM, Timer: timer.Interval}, 3 * time.Second}, {Expiry{Signal: linux.SIGALRM, Timer: timer.Interval}, 4 * time.Second}}
		if all := got(); !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
		p.Timers().SetInterval(linux.ITIMER_VIRTUAL, after(time.Second, 0))
		time.Sleep(10 * time.Second)
		all := got()
		if len(all) != 1 || all[0].expiry.Signal != linux.SIGVTALRM || all[0].at < 16500*time.Millisecond || all[0].at > 16600*time.Millisecond {
			t.Errorf("%v, want SIGVTALRM two seconds after 14.5 s", all)
		}
		if _, errno := p.Timers().SetInterval(3, after(1, 0)); errno != linux.EINVAL {
			t.Errorf("an unknown timer: %v", errno)
		}
	})
}

// Timers of timer_create send their signal to the process or to a thread, count overruns, and are deleted when the
// process ends.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, got := withTimers(t)
		for _, c := range []struct {
			clock int
			e     Event
			want  Errno
		}{
			{linux.CLOCK_MONOTONIC, Event{Notify: linux.SIGEV_SIGNAL, Signal: 0, Thread: 0}, linux.EINVAL},
			{linux.CLOCK_MONOTONIC, Event{Notify: linux.SIGEV_SIGNAL, Signal: 65, Thread: 0}, linux.EINVAL},
			{linux.CLOCK_MONOTONIC, Event{Notify: linux.SIGEV_THREAD_ID, Signal: 10, Thread: 101}, linux.EINVAL},
			{linux.CLOCK_MONOTONIC, Event{Notify: 7, Signal: 10, Thread: 0}, linux.EINVAL},
			{17, Event{Notify: linux.SIGEV_NONE, Signal: 0, Thread: 0}, linux.EINVAL},
			{linux.CLOCK_THREAD_CPUTIME_ID, Event{Notify: linux.SIGEV_NONE, Signal: 0, Thread: 0}, linux.EOPNOTSUPP},
		} {
			if _, errno := p.Timers().Create(c.clock, c.e); errno != c.want {
				t.Errorf("clock %d, %+v: %v, want %v", c.clock, c.e, errno, c.want)
			}
		}
		a, errno := p.Timers().Create(linux.CLOCK_MONOTONIC, Event{Notify: linux.SIGEV_THREAD_ID, Signal: 10, Thread: 5, Value: 4711})
		ok(t, errno)
		b, errno := p.Timers().Create(linux.CLOCK_REALTIME, Event{Notify: linux.SIGEV_THREAD, Signal: 12, Thread: 0, ValueIsID: true})
		ok(t, errno)
		p.Timers().SetTime(a, 0, after(time.Second, 0))
		p.Timers().SetTime(b, linux.TFD_TIMER_ABSTIME, after(time.Duration(time.Now().Add(2*time.Second).UnixNano()), 0))
		time.Sleep(3 * time.Second)
		want := []sent{
			{Expiry{Signal: 10, Thread: 5, Timer: a, Value: 4711}, time.Second},
			{Expiry{Signal: 12, Timer: b, Value: uint64(b)}, 2 * time.Second},
		}
		if all := got(); !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
		if s, errno := p.Timers().GetTime(a); errno != 0 || s != after(0, 0) {
			t.Errorf("after the end: %+v, %v", s, errno)
		}
		ok(t, p.Timers().Delete(a))
		if p.Timers().Delete(a) != linux.EINVAL {
			t.Error("a timer is deleted twice")
		}
		p.Timers().SetTime(b, 0, after(time.Second, time.Second))
		p.Timers().Drop()
		time.Sleep(5 * time.Second)
		if all := got(); all != nil {
			t.Errorf("after the end of the process: %v", all)
		}
	})
}

// A process can open a pidfd of itself, and its requests about scheduling succeed.
func TestWishes(t *testing.T) {
	p := files(t)
	fd, errno := p.PidFDOpen(7, 0)
	ok(t, errno)
	if _, errno := p.PidFDOpen(8, 0); errno != linux.ESRCH {
		t.Errorf("another process: %v", errno)
	}
	r, w := newPipe(t, p, 0)
	again, errno := p.PidFDGet(fd, w, 0)
	ok(t, errno)
	write(t, p, again, "x")
	if got := read(t, p, r); got != "x" {
		t.Errorf("the copy is another file: %q", got)
	}
	if _, errno := p.PidFDGet(r, w, 0); errno != linux.EBADF {
		t.Errorf("a pipe is taken for a process: %v", errno)
	}
	if errno := p.SetIOPriority(1, 0, 1<<13); errno != linux.EPERM {
		t.Errorf("the real-time class: %v", errno)
	}
	ok(t, p.SetIOPriority(1, 7, 3<<13))
	if v, errno := p.IOPriority(1, 0); v != 3<<13 || errno != 0 {
		t.Errorf("%d, %v", v, errno)
	}
	if errno := p.SetScheduler(0, schedFIFO, 1); errno != linux.EPERM {
		t.Errorf("SCHED_FIFO: %v", errno)
	}
	ok(t, p.SetScheduler(0, schedIdle, 0))
	if v, errno := p.Scheduler(7); v != schedIdle || errno != 0 {
		t.Errorf("%d, %v", v, errno)
	}
}
