package call

import (
	"time"

	"loam/abi/linux"
	"loam/posix"
)

// Timers that send signals (posix/timer).

// sizeofItimerval is the size of a struct itimerval in bytes: two struct timeval.
const sizeofItimerval = 2 * linux.SizeofTimeval

// itimerval decodes a struct itimerval. Microseconds outside 0 to 999,999 become nanoseconds outside their range, which are
// then rejected.
func itimerval(b []byte) linux.Itimerspec {
	convert := func(t linux.Timeval) linux.Timespec { return linux.Timespec{Sec: t.Sec, Nsec: t.Usec * 1000} }
	return linux.Itimerspec{Interval: convert(linux.ParseTimeval(b)), Value: convert(linux.ParseTimeval(b[linux.SizeofTimeval:]))}
}

// putItimerval writes a struct itimerval to addr. If addr is 0, it writes nothing.
func (c Caller) putItimerval(addr uint64, s linux.Itimerspec) (uint64, linux.Errno) {
	if addr == 0 {
		return 0, 0
	}
	return c.put(addr, sizeofItimerval, func(b []byte) {
		linux.NanoTimeval(s.Interval.Nano()).Put(b)
		linux.NanoTimeval(s.Value.Nano()).Put(b[linux.SizeofTimeval:])
	})
}

// setitimer implements setitimer(2). An address of 0 in place of the new value disarms the timer, as on Linux.
func setitimer(c Caller, a Args) (uint64, linux.Errno) {
	var s linux.Itimerspec
	if a.A2 != 0 {
		var errno linux.Errno
		if s, errno = parse(c, a.A2, sizeofItimerval, itimerval); errno != 0 {
			return fail(errno)
		}
	}
	old, errno := c.Process.Timers().SetInterval(number(a.A1), s)
	if errno != 0 {
		return fail(errno)
	}
	return c.putItimerval(a.A3, old)
}

func getitimer(c Caller, a Args) (uint64, linux.Errno) {
	s, errno := c.Process.Timers().GetInterval(number(a.A1))
	switch {
	case errno != 0:
		return fail(errno)
	case a.A2 == 0:
		return fail(linux.EFAULT)
	}
	return c.putItimerval(a.A2, s)
}

// alarm implements alarm(2). It returns the seconds that were left, rounded, and at least 1 if the timer was armed.
func alarm(c Caller, a Args) (uint64, linux.Errno) {
	old, errno := c.Process.Timers().SetInterval(linux.ITIMER_REAL, linux.Itimerspec{Value: linux.Timespec{Sec: int64(uint32(a.A1))}})
	if errno != 0 {
		return fail(errno)
	}
	left := time.Duration(old.Value.Nano())
	return result(int(max(left.Round(time.Second), min(left, 1)*time.Second)/time.Second), 0)
}

// timerCreate implements timer_create(2). If the caller passes no struct sigevent, the timer sends SIGALRM to the process.
func timerCreate(c Caller, a Args) (uint64, linux.Errno) {
	e := posix.Event{Notify: linux.SIGEV_SIGNAL, Signal: linux.SIGALRM, ValueIsID: true}
	if a.A2 != 0 {
		const sigevSize, sigevSignal, sigevNotify, sigevThread = 64, 8, 12, 16 // offsets in struct sigevent
		b, errno := c.copyIn(a.A2, sigevSize)
		if errno != 0 {
			return fail(errno)
		}
		e.Signal, e.Notify = int(int32(le.Uint32(b[sigevSignal:]))), int(int32(le.Uint32(b[sigevNotify:])))
		e.Thread = int32(le.Uint32(b[sigevThread:]))
		e.Value, e.ValueIsID = le.Uint64(b), false
	}
	id, errno := c.Process.Timers().Create(number(a.A1), e)
	if errno != 0 {
		return fail(errno)
	}
	if errno = c.writeUint32(a.A3, uint32(id)); errno != 0 {
		c.Process.Timers().Delete(id)
	}
	return fail(errno)
}

func timerSettime(c Caller, a Args) (uint64, linux.Errno) {
	if a.A3 == 0 {
		return fail(linux.EINVAL)
	}
	s, errno := parse(c, a.A3, linux.SizeofItimerspec, linux.ParseItimerspec)
	if errno != 0 {
		return fail(errno)
	}
	old, errno := c.Process.Timers().SetTime(int32(a.A1), number(a.A2), s)
	if errno != 0 || a.A4 == 0 {
		return fail(errno)
	}
	return c.put(a.A4, linux.SizeofItimerspec, old.Put)
}

func timerGettime(c Caller, a Args) (uint64, linux.Errno) {
	s, errno := c.Process.Timers().GetTime(int32(a.A1))
	if errno != 0 {
		return fail(errno)
	}
	return c.put(a.A2, linux.SizeofItimerspec, s.Put)
}
