package posix

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
)

// in returns a timer setting.
func in(value, interval time.Duration) TimerSetting {
	return TimerSetting{Interval: linux.NanoTimespec(int64(interval)), Value: linux.NanoTimespec(int64(value))}
}

// expirations reads a timer; it returns 0 if the timer has not expired.
func expirations(t *testing.T, p *Process, fd int) uint64 {
	t.Helper()
	b := make([]byte, 8)
	if _, errno := p.Read(fd, b); errno == linux.EAGAIN {
		return 0
	} else if errno != 0 {
		t.Fatal(errno)
	}
	return binary.NativeEndian.Uint64(b)
}

func TestTimerFD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		booted := time.Now().Add(-time.Hour)
		p := New(Options{Clock: func(int) time.Duration { return time.Since(booted) }})
		timer := fd(t)(p.TimerFDCreate(linux.CLOCK_MONOTONIC, linux.O_NONBLOCK))
		ep := fd(t)(p.EpollCreate(0))
		ok(t, p.EpollCtl(ep, linux.EPOLL_CTL_ADD, timer, EpollEvent{Events: uint32(PollIn) | linux.EPOLLET, Data: 1}))

		old, errno := p.TimerFDSet(timer, 0, in(3*time.Second, 2*time.Second))
		if errno != 0 || old != (TimerSetting{}) {
			t.Errorf("before: %v, %v", old, errno)
		}
		start := time.Now()
		if got := epollWait(t, p, ep, time.Minute); len(got) != 1 || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v, want one event after 3s", got, time.Since(start))
		}
		time.Sleep(5 * time.Second) // the time is now 8 s; the timer has expired at 3, 5 and 7 s
		if got, _ := p.TimerFDGet(timer); got != in(time.Second, 2*time.Second) {
			t.Errorf("left at 8s: %v", got)
		}
		if got := expirations(t, p, timer); got != 3 {
			t.Errorf("expired %d times, want 3", got)
		}
		if got := expirations(t, p, timer); got != 0 {
			t.Errorf("and then %d times", got)
		}
		if got := epollWait(t, p, ep, time.Minute); len(got) != 1 || time.Since(start) != 9*time.Second {
			t.Errorf("%v after %v, want one event after 9s", got, time.Since(start))
		}

		// Timers are set to an absolute time of the clock, to a time in the past, and to a time
		// of the wall clock.
		p.TimerFDSet(timer, linux.TFD_TIMER_ABSTIME, in(time.Since(booted)+4*time.Second, 0))
		if got, _ := p.TimerFDGet(timer); got != in(4*time.Second, 0) {
			t.Errorf("left of 4s: %v", got)
		}
		p.TimerFDSet(timer, linux.TFD_TIMER_ABSTIME, in(time.Second, 0))
		if got := expirations(t, p, timer); got != 1 {
			t.Errorf("what has passed: %d times", got)
		}
		wall := fd(t)(p.TimerFDCreate(linux.CLOCK_REALTIME, 0))
		start = time.Now()
		p.TimerFDSet(wall, linux.TFD_TIMER_ABSTIME|linux.TFD_TIMER_CANCEL_ON_SET, in(time.Duration(start.Add(time.Minute).UnixNano()), 0))
		if got := expirations(t, p, wall); got != 1 || time.Since(start) != time.Minute {
			t.Errorf("%d times after %v, want once after 1m", got, time.Since(start))
		}

		// Disarming a timer discards unread expirations.
		p.TimerFDSet(timer, 0, in(time.Second, time.Second))
		time.Sleep(10 * time.Second)
		p.TimerFDSet(timer, 0, in(0, time.Second))
		time.Sleep(10 * time.Second)
		if got := expirations(t, p, timer); got != 0 {
			t.Errorf("one that is off: %d times", got)
		}
		ok(t, p.Close(timer))
		ok(t, p.Close(wall))
	})
}

func TestTimerFDErrors(t *testing.T) {
	p := New(Options{})
	for clock, want := range map[int]Errno{-1: linux.EINVAL, 2: linux.EINVAL, 8: linux.EPERM, 9: linux.EPERM} {
		if _, errno := p.TimerFDCreate(clock, 0); errno != want {
			t.Errorf("clock %d: %v, want %v", clock, errno, want)
		}
	}
	if _, errno := p.TimerFDCreate(linux.CLOCK_MONOTONIC, 1); errno != linux.EINVAL {
		t.Errorf("unknown flags: %v", errno)
	}
	timer := fd(t)(p.TimerFDCreate(linux.CLOCK_MONOTONIC, linux.O_NONBLOCK))
	event := fd(t)(p.EventFD(0, 0))
	for _, c := range []struct {
		fd, flags int
		s         TimerSetting
		want      Errno
	}{
		{timer, 4, TimerSetting{}, linux.EINVAL},
		{timer, 0, TimerSetting{Value: linux.Timespec{Nsec: 1e9}}, linux.EINVAL},
		{timer, 0, TimerSetting{Interval: linux.Timespec{Sec: -1}}, linux.EINVAL},
		{99, 0, TimerSetting{}, linux.EBADF},
		{event, 0, TimerSetting{}, linux.EINVAL},
		{timer, 0, TimerSetting{Value: linux.Timespec{Sec: 1 << 62}}, 0},
	} {
		if _, errno := p.TimerFDSet(c.fd, c.flags, c.s); errno != c.want {
			t.Errorf("%+v: %v", c, errno)
		}
	}
	if _, errno := p.Read(timer, make([]byte, 7)); errno != linux.EINVAL {
		t.Errorf("read of 7 bytes: %v", errno)
	}
	if _, errno := p.Write(timer, make([]byte, 8)); errno != linux.EINVAL {
		t.Errorf("write: %v", errno)
	}
	if got := p.Name(timer); got != "anon_inode:[timerfd]" {
		t.Errorf("name %q", got)
	}
	ok(t, p.Close(timer))
}
