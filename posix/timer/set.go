package timer

import (
	"sync"
	"time"

	"loam/abi/linux"
)

// Timers that send a signal: setitimer(2), alarm(2) and timer_create(2). They are for a program in a virtual machine,
// whose kernel is Loam's. If a program runs as a Linux process, Linux implements these timers.
//
// A timer of a clock works like a timer file (timerfd). A timer of CPU time reads its clock at the earliest time at
// which it can expire. All CPUs can advance the clock of a process at once, but only one the clock of a thread.

// Expiry is the signal of a timer that has expired.
type Expiry struct {
	Signal  int    // 0: no signal is sent, and only errors are returned
	Thread  int32  // the thread to which the signal is sent; 0: the process
	Timer   int32  // ID of a timer of timer_create(2), or Interval
	Value   uint64 // value for the signal handler (sigev_value)
	Overrun uint64 // number of expirations after the first that this signal reports
}

// Interval is the Timer of setitimer(2) in an Expiry. Its signals have no value, and are never merged.
const Interval = -1

// Sender sends the signal of a timer. If a signal of this timer is still pending, Sender adds the expirations to the pending
// signal, and merged is true. Errors: ESRCH.
type Sender func(Expiry) (merged bool, errno linux.Errno)

// Clock reads the clock with an ID of clock_gettime(2).
type Clock func(id int) time.Duration

// CPUClock reads a clock of CPU time with an ID of clock_gettime(2). ok is false if there is no such clock, for example
// because its thread has ended.
type CPUClock func(id int) (now time.Duration, ok bool)

// Set holds the timers of a process that send signals. Its methods implement the system calls.
type Set struct {
	clock Clock
	send  Sender   // nil: the system calls fail with ENOSYS
	cpu   CPUClock // nil: clock has the CPU time of the process, and threads have no clocks

	mu       sync.Mutex // guards the fields below
	interval [linux.ITIMER_PROF + 1]*signalTimer
	created  map[int32]*signalTimer // timers of timer_create(2), by ID
	last     int32                  // ID of the newest timer
}

// Init sets the clocks and the sender, which may be nil, before the set is used.
func (all *Set) Init(c Clock, send Sender) { all.clock, all.send = c, send }

// SetOwner sets the sender and the clocks of CPU time, before the set is used.
func (all *Set) SetOwner(send Sender, cpu CPUClock) { all.send, all.cpu = send, cpu }

// cpuTime is the CPUClock of the set.
func (all *Set) cpuTime(id int) (now time.Duration, ok bool) {
	if all.cpu != nil {
		return all.cpu(id)
	}
	if ok = id == linux.CLOCK_PROCESS_CPUTIME_ID; ok {
		now = all.clock(id)
	}
	return now, ok
}

// HasClock reports whether a clock of CPU time exists, for a caller with a process number.
func (all *Set) HasClock(id int, caller int32) bool {
	number, _, ok := ParseClock(id)
	if ok && number != 0 && number != int(caller) {
		_, ok = all.cpuTime(id)
	}
	return ok
}

// sendSignal calls the Sender. Errors: ENOSYS without a Sender, ESRCH.
func (all *Set) sendSignal(e Expiry) (merged bool, errno linux.Errno) {
	if all.send == nil {
		return false, linux.ENOSYS
	}
	return all.send(e)
}

// lastSignal is the highest signal number (signal(7)).
const lastSignal = 64

// maxTimers is the maximum number of timers of timer_create(2), as RLIMIT_SIGPENDING limits them on Linux.
const maxTimers = 4096

// Event says what happens when a timer of timer_create(2) expires (struct sigevent).
type Event struct {
	Notify int // SIGEV_NONE, SIGEV_THREAD_ID, SIGEV_SIGNAL, or SIGEV_THREAD, which is the same as SIGEV_SIGNAL
	Signal int
	Thread int32
	Value  uint64 // value for the signal handler; the ID of the timer if ValueIsID is set
	// ValueIsID is set if the caller of timer_create(2) passed no struct sigevent.
	ValueIsID bool
}

// signalTimer is a timer that sends a signal when it expires.
type signalTimer struct {
	clock interface {
		// Set returns the previous setting. Errors: EINVAL after Close, ESRCH if the clock has disappeared.
		Set(s Setting, flags int) (Setting, linux.Errno)
		Get() Setting
		Close()
	}
	id      int32      // ID of a timer of timer_create(2); not changed after the timer is first set
	mu      sync.Mutex // guards overrun
	overrun uint64     // number of expirations after the one that sent the last signal
}

// newTimer makes a timer that is not armed. Errors: EINVAL for an unknown clock, EOPNOTSUPP for a clock without timers.
func (all *Set) newTimer(clock int, e Event) (*signalTimer, linux.Errno) {
	t := &signalTimer{id: Interval}
	notify := func(n uint64) {
		t.mu.Lock()
		defer t.mu.Unlock()
		s := Expiry{Signal: e.Signal, Timer: t.id, Value: e.Value, Overrun: n - 1}
		if e.ValueIsID {
			s.Value = uint64(t.id)
		}
		merged := false
		switch e.Notify {
		case linux.SIGEV_SIGNAL, linux.SIGEV_THREAD:
			merged, _ = all.sendSignal(s)
		case linux.SIGEV_THREAD_ID:
			s.Thread = e.Thread
			merged, _ = all.sendSignal(s)
		}
		if !merged {
			t.overrun = n - 1
			return
		}
		t.overrun += n
	}
	switch clock {
	case linux.CLOCK_REALTIME, linux.CLOCK_MONOTONIC, linux.CLOCK_BOOTTIME, linux.CLOCK_TAI:
		t.clock = &File{id: clock, clock: all.clock, notify: notify}
		return t, 0
	}
	if _, ok := all.cpuTime(clock); ok {
		t.clock = newCPUTimer(clock, all.cpuTime, notify)
		return t, 0
	}
	switch clock {
	case linux.CLOCK_THREAD_CPUTIME_ID, linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_MONOTONIC_COARSE:
		return nil, linux.EOPNOTSUPP
	}
	return nil, linux.EINVAL
}

// SetInterval implements setitimer(2). It returns the previous setting. Errors: EINVAL.
func (all *Set) SetInterval(which int, s Setting) (Setting, linux.Errno) {
	if which < linux.ITIMER_REAL || which > linux.ITIMER_PROF || !Valid(s) {
		return Setting{}, linux.EINVAL
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.interval[which]
	if t == nil {
		e := Event{Notify: linux.SIGEV_SIGNAL, Signal: [...]int{linux.SIGALRM, linux.SIGVTALRM, linux.SIGPROF}[which]}
		clock := linux.CLOCK_MONOTONIC
		if which != linux.ITIMER_REAL {
			clock = linux.CLOCK_PROCESS_CPUTIME_ID
		}
		var errno linux.Errno
		if t, errno = all.newTimer(clock, e); errno != 0 {
			return Setting{}, errno
		}
		all.interval[which] = t
	}
	return t.clock.Set(s, 0)
}

// GetInterval implements getitimer(2). Errors: EINVAL.
func (all *Set) GetInterval(which int) (Setting, linux.Errno) {
	if which < linux.ITIMER_REAL || which > linux.ITIMER_PROF {
		return Setting{}, linux.EINVAL
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if t := all.interval[which]; t != nil {
		return t.clock.Get(), 0
	}
	return Setting{}, 0
}

// Create implements timer_create(2). It returns the timer's ID. Errors: EINVAL, EAGAIN, EOPNOTSUPP.
func (all *Set) Create(clock int, e Event) (int32, linux.Errno) {
	switch e.Notify {
	case linux.SIGEV_NONE:
	case linux.SIGEV_SIGNAL, linux.SIGEV_THREAD, linux.SIGEV_THREAD_ID:
		if e.Signal < 1 || e.Signal > lastSignal {
			return -1, linux.EINVAL
		}
		if e.Notify == linux.SIGEV_THREAD_ID {
			if _, errno := all.sendSignal(Expiry{Thread: e.Thread}); errno != 0 {
				return -1, linux.EINVAL
			}
		}
	default:
		return -1, linux.EINVAL
	}
	t, errno := all.newTimer(clock, e)
	if errno != 0 {
		return -1, errno
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.created) >= maxTimers {
		return -1, linux.EAGAIN
	}
	if all.created == nil {
		all.created = make(map[int32]*signalTimer)
	}
	id := all.last
	for all.created[id] != nil {
		id = (id + 1) & (1<<31 - 1)
	}
	t.id = id
	all.created[id], all.last = t, (id+1)&(1<<31-1)
	return id, 0
}

// timer returns a timer of timer_create(2). Errors: EINVAL.
func (all *Set) timer(id int32) (*signalTimer, linux.Errno) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if t := all.created[id]; t != nil {
		return t, 0
	}
	return nil, linux.EINVAL
}

// SetTime implements timer_settime(2). It returns the previous setting. Errors: EINVAL, ESRCH if the thread or process
// whose CPU time the timer measures has ended.
func (all *Set) SetTime(id int32, flags int, s Setting) (Setting, linux.Errno) {
	t, errno := all.timer(id)
	switch {
	case errno != 0:
		return Setting{}, errno
	case !Valid(s):
		return Setting{}, linux.EINVAL
	}
	return t.clock.Set(s, flags) // TIMER_ABSTIME and TFD_TIMER_ABSTIME have the same value
}

// GetTime implements timer_gettime(2). Errors: EINVAL.
func (all *Set) GetTime(id int32) (Setting, linux.Errno) {
	t, errno := all.timer(id)
	if errno != 0 {
		return Setting{}, errno
	}
	return t.clock.Get(), 0
}

// Overrun implements timer_getoverrun(2). Errors: EINVAL.
func (all *Set) Overrun(id int32) (int, linux.Errno) {
	const most = 1<<31 - 1
	t, errno := all.timer(id)
	if errno != 0 {
		return -1, errno
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(min(t.overrun, most)), 0
}

// Delete implements timer_delete(2). Errors: EINVAL.
func (all *Set) Delete(id int32) linux.Errno {
	t, errno := all.timer(id)
	if errno != 0 {
		return errno
	}
	t.clock.Close()
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.created, id)
	return 0
}

// Drop deletes the timers when the process ends or executes another program.
func (all *Set) Drop() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, t := range all.created {
		t.clock.Close()
	}
	all.created = nil
}
