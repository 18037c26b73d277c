package task

import (
	"encoding/binary"
	"time"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/account"
)

// timeCalls are the calls for clocks, sleeps and timers.
var timeCalls = map[int]serveFunc{
	linux.SYS_CLOCK_GETTIME: func(t *Task, a call.Args) (uint64, linux.Errno) {
		now, errno := t.clock(number(a.A1))
		if errno != 0 {
			return 0, errno
		}
		return 0, t.put(a.A2, linux.SizeofTimespec, linux.NanoTimespec(now).Put)
	},
	linux.SYS_CLOCK_GETRES: func(t *Task, a call.Args) (uint64, linux.Errno) {
		if _, errno := t.clock(number(a.A1)); errno != 0 {
			return 0, errno
		}
		return 0, t.put(a.A2, linux.SizeofTimespec, linux.Timespec{Nsec: linux.ClockResolution(number(a.A1))}.Put)
	},
	linux.SYS_GETTIMEOFDAY: func(t *Task, a call.Args) (uint64, linux.Errno) {
		const sizeofTimezone = 8
		errno := t.put(a.A1, linux.SizeofTimeval, linux.NanoTimeval(time.Now().UnixNano()).Put)
		if errno == 0 {
			errno = t.put(a.A2, sizeofTimezone, func([]byte) {}) // the kernel has no time zone
		}
		return 0, errno
	},
	linux.SYS_TIME: func(t *Task, a call.Args) (uint64, linux.Errno) {
		now := uint64(time.Now().Unix())
		return now, t.put(a.A1, 8, func(b []byte) { binary.LittleEndian.PutUint64(b, now) })
	},
	linux.SYS_TIMES: times,
	linux.SYS_TIMER_CREATE: func(t *Task, a call.Args) (uint64, linux.Errno) {
		a.A1 = uint64(t.cpuClock(number(a.A1)))
		return personality[linux.SYS_TIMER_CREATE].Serve(t.caller, a)
	},
	linux.SYS_TIMER_SETTIME: charged(linux.SYS_TIMER_SETTIME),
	linux.SYS_TIMER_GETTIME: charged(linux.SYS_TIMER_GETTIME),
	linux.SYS_NANOSLEEP:     func(t *Task, a call.Args) (uint64, linux.Errno) { return t.sleep(a.A1, a.A2) },
	linux.SYS_CLOCK_NANOSLEEP: func(t *Task, a call.Args) (uint64, linux.Errno) {
		now, errno := t.clock(number(a.A1))
		switch {
		case errno != 0:
			return 0, errno
		case account.CannotSleep(number(a.A1)):
			return 0, linux.EOPNOTSUPP
		}
		if a.A2&linux.TIMER_ABSTIME == 0 {
			return t.sleep(a.A3, a.A4)
		}
		until, errno := t.duration(a.A3)
		if errno != 0 {
			return 0, errno
		}
		return 0, account.Slept(t.await(nil, max(until-time.Duration(now), 0)))
	},
	linux.SYS_ALARM: func(t *Task, a call.Args) (uint64, linux.Errno) {
		left, _ := t.process.alarm.Set(time.Duration(uint32(a.A1))*time.Second, 0, t.process.ring)
		return uint64((left + time.Second - 1) / time.Second), 0
	},
	linux.SYS_SETITIMER: setitimer,
	linux.SYS_GETITIMER: func(t *Task, a call.Args) (uint64, linux.Errno) {
		if number(a.A1) != linux.ITIMER_REAL {
			return t.cpuTimer(number(a.A1), a.A2, nil)
		}
		left, interval := t.process.alarm.Left()
		return 0, t.putItimer(a.A2, left, interval)
	},
}

// charged returns a call of the personality that first charges the CPU time of the caller.
func charged(number int) serveFunc {
	return func(t *Task, a call.Args) (uint64, linux.Errno) {
		t.charge()
		return personality[number].Serve(t.caller, a)
	}
}

// clock returns the time of a clock in nanoseconds. Errors: EINVAL.
func (t *Task) clock(id int) (int64, linux.Errno) {
	switch id {
	case linux.CLOCK_REALTIME, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_TAI:
		return account.Rounded(time.Now().UnixNano(), id), 0
	case linux.CLOCK_MONOTONIC, linux.CLOCK_MONOTONIC_COARSE, linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_BOOTTIME:
		return account.Rounded(int64(t.process.system.monotonic()), id), 0
	}
	t.charge()
	if now, ok := t.process.cpuTime(t.cpuClock(id)); ok {
		return int64(now), 0
	}
	return 0, linux.EINVAL
}

// duration reads a struct timespec. Errors: EFAULT, EINVAL.
func (t *Task) duration(addr uint64) (time.Duration, linux.Errno) {
	const most = 1 << 33 // seconds: more than every wait, and fits into nanoseconds
	s, errno := read(t, addr, linux.SizeofTimespec, linux.ParseTimespec)
	if errno == 0 && (s.Sec < 0 || s.Nsec < 0 || s.Nsec >= int64(time.Second)) {
		errno = linux.EINVAL
	}
	s.Sec = min(s.Sec, most)
	return time.Duration(s.Nano()), errno
}

// sleep implements nanosleep(2). After an interrupt it stores the remaining time at the address remaining.
func (t *Task) sleep(request, remaining uint64) (uint64, linux.Errno) {
	most, errno := t.duration(request)
	if errno != 0 {
		return 0, errno
	}
	end := time.Now().Add(most)
	errno = account.Slept(t.await(nil, most))
	if errno == linux.EINTR && remaining != 0 {
		left := max(time.Until(end), 0)
		if errno := t.put(remaining, linux.SizeofTimespec, linux.NanoTimespec(int64(left)).Put); errno != 0 {
			return 0, errno
		}
	}
	return 0, errno
}

// setitimer implements setitimer(2). Errors: EINVAL, EFAULT.
func setitimer(t *Task, a call.Args) (uint64, linux.Errno) {
	var interval, first time.Duration
	if a.A2 != 0 {
		var b [2 * linux.SizeofTimeval]byte
		if errno := t.caller.Memory.Read(b[:], a.A2); errno != 0 {
			return 0, errno
		}
		interval = time.Duration(linux.ParseTimeval(b[:]).Nano())
		first = time.Duration(linux.ParseTimeval(b[linux.SizeofTimeval:]).Nano())
	}
	if number(a.A1) != linux.ITIMER_REAL {
		return t.cpuTimer(number(a.A1), a.A3, func(c *account.Timer, now time.Duration) (left, old time.Duration) {
			return c.Set(now, first, interval)
		})
	}
	left, old := t.process.alarm.Set(first, interval, t.process.ring)
	return 0, t.putItimer(a.A3, left, old)
}

// cpuTimer implements setitimer(2) and getitimer(2) for timers of CPU time. If the
// function set is nil, the timer is only read. Errors: EINVAL.
func (t *Task) cpuTimer(which int, to uint64, set func(c *account.Timer, now time.Duration) (left, old time.Duration)) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	if set == nil {
		set = (*account.Timer).Left
	}
	t.charge()
	s.mu.Lock()
	c, now := p.cpuItimer(which)
	if c == nil {
		s.mu.Unlock()
		return 0, linux.EINVAL
	}
	left, old := set(c, now)
	p.retime()
	s.mu.Unlock()
	return 0, t.putItimer(to, left, old)
}

func (t *Task) putItimer(addr uint64, left, interval time.Duration) linux.Errno {
	return t.put(addr, 2*linux.SizeofTimeval, func(b []byte) {
		linux.NanoTimeval(int64(interval)).Put(b)
		linux.NanoTimeval(int64(left)).Put(b[linux.SizeofTimeval:])
	})
}

// sysinfo implements sysinfo(2).
func sysinfo(t *Task, a call.Args) (uint64, linux.Errno) {
	const size, loadsAt, totalAt, freeAt, procsAt, unitAt, loadUnit = 112, 8, 32, 40, 80, 104, 1 << 16
	s := t.process.system
	s.mu.Lock()
	processes, load := len(s.processes), s.load
	s.mu.Unlock()
	le := binary.LittleEndian
	total, free := s.physical()
	return 0, t.put(a.A1, size, func(b []byte) {
		le.PutUint64(b, uint64((s.monotonic()+time.Second-1)/time.Second))
		for i, l := range load {
			le.PutUint64(b[loadsAt+8*i:], uint64(l*loadUnit))
		}
		le.PutUint64(b[totalAt:], total)
		le.PutUint64(b[freeAt:], free)
		le.PutUint16(b[procsAt:], uint16(processes))
		le.PutUint32(b[unitAt:], 1)
	})
}
