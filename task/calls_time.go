package task

import (
	"encoding/binary"
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/account"
	"loam/task/futex"
)

// timeCalls are clocks, sleeps, timers and futexes.
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
		return 0, t.put(a.A2, linux.SizeofTimespec, linux.Timespec{Nsec: 1}.Put)
	},
	linux.SYS_GETTIMEOFDAY: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return 0, t.put(a.A1, linux.SizeofTimeval, linux.NanoTimeval(time.Now().UnixNano()).Put)
	},
	linux.SYS_TIME: func(t *Task, a call.Args) (uint64, linux.Errno) {
		now := uint64(time.Now().Unix())
		return now, t.put(a.A1, 8, func(b []byte) { binary.LittleEndian.PutUint64(b, now) })
	},
	linux.SYS_TIMES:     times,
	linux.SYS_NANOSLEEP: func(t *Task, a call.Args) (uint64, linux.Errno) { return t.sleep(a.A1, a.A2) },
	linux.SYS_CLOCK_NANOSLEEP: func(t *Task, a call.Args) (uint64, linux.Errno) {
		now, errno := t.clock(number(a.A1))
		if errno != 0 {
			return 0, errno
		}
		if a.A2&linux.TIMER_ABSTIME == 0 {
			return t.sleep(a.A3, a.A4)
		}
		until, errno := t.duration(a.A3)
		if errno != 0 {
			return 0, errno
		}
		return 0, slept(t.await(nil, max(until-time.Duration(now), 0)))
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
	linux.SYS_FUTEX:       futexCall,
	linux.SYS_FUTEX_WAITV: futexWaitv,
	linux.SYS_SET_ROBUST_LIST: func(t *Task, a call.Args) (uint64, linux.Errno) {
		const headSize = 24
		if a.A2 != headSize {
			return 0, linux.EINVAL
		}
		t.robust = a.A1
		return 0, 0
	},
}

// clock returns the time of a clock in nanoseconds. Errors: EINVAL.
func (t *Task) clock(id int) (int64, linux.Errno) {
	switch id {
	case linux.CLOCK_REALTIME, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_TAI:
		return time.Now().UnixNano(), 0
	case linux.CLOCK_MONOTONIC, linux.CLOCK_MONOTONIC_COARSE, linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_BOOTTIME:
		return int64(t.process.system.monotonic()), 0
	}
	if now, ok := t.cpuClock(id); ok {
		return now, 0
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

// slept converts the result of a wait that only waits for its timeout.
func slept(errno linux.Errno) linux.Errno {
	if errno == linux.ETIMEDOUT {
		return 0
	}
	return errno
}

// sleep implements nanosleep(2). After an interrupt it stores the remaining time at the address remaining.
func (t *Task) sleep(request, remaining uint64) (uint64, linux.Errno) {
	most, errno := t.duration(request)
	if errno != 0 {
		return 0, errno
	}
	end := time.Now().Add(most)
	errno = slept(t.await(nil, most))
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

// cpuTimer implements setitimer(2) and getitimer(2) for timers of CPU time. A nil set only reads. Errors: EINVAL.
func (t *Task) cpuTimer(which int, to uint64, set func(c *account.Timer, now time.Duration) (left, old time.Duration)) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	if set == nil {
		set = (*account.Timer).Left
	}
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

// realtimeFutex holds the operations of futex(2) that may have FUTEX_CLOCK_REALTIME.
const realtimeFutex = 1<<linux.FUTEX_WAIT | 1<<linux.FUTEX_WAIT_BITSET | 1<<linux.FUTEX_WAIT_REQUEUE_PI | 1<<linux.FUTEX_LOCK_PI2

// futexCall implements futex(2). futexpi.go has the operations with priority inheritance.
func futexCall(t *Task, a call.Args) (uint64, linux.Errno) {
	private := a.A2&linux.FUTEX_PRIVATE_FLAG != 0
	const four = 4
	if a.A1%four != 0 {
		return 0, linux.EINVAL
	}
	key, ok := t.memory().Locate(a.A1, private)
	if !ok {
		return 0, linux.EFAULT
	}
	operation := uint32(a.A2) &^ (linux.FUTEX_PRIVATE_FLAG | linux.FUTEX_CLOCK_REALTIME)
	if a.A2&linux.FUTEX_CLOCK_REALTIME != 0 && realtimeFutex>>operation&1 == 0 {
		return 0, linux.ENOSYS
	}
	switch operation {
	case linux.FUTEX_WAIT:
		return t.futexWait(key, a, false, futex.AnyBit)
	case linux.FUTEX_WAIT_BITSET:
		return t.futexWait(key, a, true, uint32(a.A6))
	case linux.FUTEX_WAKE:
		return t.futexWake(key, a, futex.AnyBit)
	case linux.FUTEX_WAKE_BITSET:
		return t.futexWake(key, a, uint32(a.A6))
	case linux.FUTEX_REQUEUE:
		return t.futexRequeue(key, a, private, false)
	case linux.FUTEX_CMP_REQUEUE:
		return t.futexRequeue(key, a, private, true)
	case linux.FUTEX_WAKE_OP:
		return t.futexWakeOp(key, a, private)
	case linux.FUTEX_LOCK_PI:
		return t.futexLock(key, a, linux.CLOCK_REALTIME, false)
	case linux.FUTEX_TRYLOCK_PI:
		return t.futexLock(key, a, linux.CLOCK_REALTIME, true)
	case linux.FUTEX_LOCK_PI2:
		clock := linux.CLOCK_MONOTONIC
		if a.A2&linux.FUTEX_CLOCK_REALTIME != 0 {
			clock = linux.CLOCK_REALTIME
		}
		return t.futexLock(key, a, clock, false)
	case linux.FUTEX_UNLOCK_PI:
		return t.futexUnlock(key, a)
	case linux.FUTEX_WAIT_REQUEUE_PI:
		return t.futexWaitRequeue(key, a, private)
	case linux.FUTEX_CMP_REQUEUE_PI:
		return t.futexRequeueLock(key, a, private)
	}
	return 0, linux.ENOSYS
}

// futexWake implements FUTEX_WAKE and FUTEX_WAKE_BITSET. Errors: EINVAL.
func (t *Task) futexWake(key mem.Location, a call.Args, bits uint32) (uint64, linux.Errno) {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if bits == 0 || !s.futexes.Plain(key) {
		return 0, linux.EINVAL
	}
	return uint64(s.rouse(s.futexes.Wake(key, number(a.A3), bits))), 0
}

// futexWait waits while the word has a value. The time is relative, or absolute with a bitset. Errors: EAGAIN if the
// word has another value, ETIMEDOUT, EINTR.
func (t *Task) futexWait(key mem.Location, a call.Args, absolute bool, bits uint32) (uint64, linux.Errno) {
	if bits == 0 {
		return 0, linux.EINVAL
	}
	most := forever
	if a.A4 != 0 {
		var errno linux.Errno
		if most, errno = t.duration(a.A4); errno != 0 {
			return 0, errno
		}
		if absolute {
			id := linux.CLOCK_MONOTONIC
			if a.A2&linux.FUTEX_CLOCK_REALTIME != 0 {
				id = linux.CLOCK_REALTIME
			}
			now, _ := t.clock(id)
			most = max(most-time.Duration(now), 0)
		}
	}
	m := memory{t}
	if _, errno := m.word(a.A1); errno != 0 { // makes the page present, without the lock
		return 0, errno
	}
	s := t.process.system
	w := &t.waiter
	s.mu.Lock()
	if errno := m.expect(a.A1, uint32(a.A3)); errno != 0 {
		s.mu.Unlock()
		return 0, errno
	}
	s.futexes.Wait(key, w, bits)
	s.mu.Unlock()
	errno := t.await(w.Woken, most)
	if errno == 0 {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.futexes.Cancel(w) { // the thread was woken meanwhile
		<-w.Woken
		return 0, 0
	}
	return 0, errno
}

// wake wakes waiters and returns their number.
func (s *System) wake(key mem.Location, n int, bits uint32) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.futexes.Plain(key) {
		return 0
	}
	return s.rouse(s.futexes.Wake(key, n, bits))
}

// rouse resumes waiters that were removed from the futexes. The caller holds System.mu.
func (s *System) rouse(all []*futex.Waiter[mem.Location]) int {
	for _, w := range all {
		w.Woken <- struct{}{}
	}
	return len(all)
}

// futexRequeue wakes some waiters and moves others to a second futex.
func (t *Task) futexRequeue(key mem.Location, a call.Args, private, compare bool) (uint64, linux.Errno) {
	to, ok := t.memory().Locate(a.A5, private)
	if !ok {
		return 0, linux.EFAULT
	}
	if number(a.A3) < 0 || number(a.A4) < 0 {
		return 0, linux.EINVAL
	}
	m := memory{t}
	if _, errno := m.word(a.A1); errno != 0 {
		return 0, errno
	}
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.futexes.Plain(key) {
		return 0, linux.EINVAL
	}
	if compare {
		switch v, errno := m.word(a.A1); {
		case errno != 0:
			return 0, errno
		case v != uint32(a.A6):
			return 0, linux.EAGAIN
		}
	}
	woken, moved := s.futexes.Requeue(key, to, number(a.A3), number(a.A4))
	n := s.rouse(woken)
	if compare {
		n += moved
	}
	return uint64(n), 0
}

// futexWakeOp changes a second word, and wakes waiters of both.
func (t *Task) futexWakeOp(key mem.Location, a call.Args, private bool) (uint64, linux.Errno) {
	second, ok := t.memory().Locate(a.A5, private)
	if !ok {
		return 0, linux.EFAULT
	}
	m := memory{t}
	if errno := m.writable(a.A5); errno != 0 {
		return 0, errno
	}
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.futexes.Plain(key) || !s.futexes.Plain(second) {
		return 0, linux.EINVAL
	}
	compares := false
	_, errno := m.futexWord(a.A5, func(old uint32) (uint32, linux.Errno) {
		value, is, ok := futex.Operation(a.A6).Apply(old)
		if compares = is; !ok {
			return 0, linux.ENOSYS
		}
		return value, 0
	})
	if errno != 0 {
		return 0, errno
	}
	n := s.rouse(s.futexes.Wake(key, number(a.A3), futex.AnyBit))
	if compares {
		n += s.rouse(s.futexes.Wake(second, number(a.A4), futex.AnyBit))
	}
	return uint64(n), 0
}

// wakeAt wakes one waiter of a word.
func (t *Task) wakeAt(addr uint64) {
	if key, ok := t.memory().Locate(addr, false); ok {
		t.process.system.wake(key, 1, futex.AnyBit)
	}
	t.process.system.wake(mem.Location{Map: t.memory().Map, Offset: addr}, 1, futex.AnyBit)
}

// leaveRobust releases the robust futexes that the thread holds.
func (t *Task) leaveRobust() {
	if t.robust == 0 {
		return
	}
	m := memory{t}
	read := func(addr uint64) (uint64, bool) {
		v, errno := m.Pointer(addr)
		return v, errno == 0
	}
	futex.WalkRobust(t.robust, read, func(r futex.Robust) {
		var wake, free bool
		if _, errno := m.futexWord(r.Word, func(word uint32) (value uint32, errno linux.Errno) {
			var held bool
			if value, wake, held = futex.DiedOwner(word, uint32(t.id)); !held {
				errno = linux.ESRCH
			}
			free = word == 0
			return value, errno
		}); errno != 0 && errno != linux.ESRCH {
			return
		}
		if !r.PI && (wake || r.Pending && free) { // leaveLocks hands a PI futex over
			t.wakeAt(r.Word)
		}
	})
	t.robust = 0
}

// sysinfo implements sysinfo(2).
func sysinfo(t *Task, a call.Args) (uint64, linux.Errno) {
	const size, totalAt, freeAt, procsAt, unitAt = 112, 32, 40, 80, 104
	s := t.process.system
	s.mu.Lock()
	processes := len(s.processes)
	s.mu.Unlock()
	le := binary.LittleEndian
	return 0, t.put(a.A1, size, func(b []byte) {
		le.PutUint64(b, uint64(time.Since(s.config.Started)/time.Second))
		le.PutUint64(b[totalAt:], uint64(s.config.Machine.Pages())*mem.PageSize)
		le.PutUint64(b[freeAt:], uint64(max(s.config.Machine.Pages()-s.account.Committed(), 0))*mem.PageSize)
		le.PutUint16(b[procsAt:], uint16(processes))
		le.PutUint32(b[unitAt:], 1)
	})
}
