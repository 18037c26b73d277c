package posix

import (
	"sync"
	"time"

	"loam/abi/linux"
)

// Timers that send a signal: setitimer(2), alarm(2) and timer_create(2). They are for a program whose kernel is Loam's;
// as a process, Linux has them.
//
// A timer of a clock runs as a timer file does. A timer of CPU time looks at the clock when it can expire at the
// earliest: when all CPUs have worked for the program until then.

// Sender sends a signal to the process, or to the thread with an ID if thread is not 0.
type Sender func(thread int32, signal int) Errno

// timers are the timers of a process.
type timers struct {
	mu       sync.Mutex // guards the fields below
	interval [linux.ITIMER_PROF + 1]*signalTimer
	created  map[int32]*signalTimer // by ID
	last     int32                  // the ID that was given last
}

// maxTimers is the maximum number of timers of timer_create(2), as RLIMIT_SIGPENDING limits them on Linux.
const maxTimers = 4096

// Event says what happens when a timer of timer_create(2) expires (struct sigevent).
type Event struct {
	Notify int // SIGEV_SIGNAL, SIGEV_NONE or SIGEV_THREAD_ID
	Signal int
	Thread int32
}

// signalTimer is a timer with a signal.
type signalTimer struct {
	clock interface {
		set(s TimerSetting, absolute bool) TimerSetting
		get() TimerSetting
		Close()
	}
	mu      sync.Mutex // guards overrun
	overrun uint64     // expirations beyond the first at the last signal
}

// newTimer makes a timer that is not armed. Errors: EINVAL for a clock that there is not, EOPNOTSUPP for one that no timer
// can have.
func (p *Process) newTimer(clock int, e Event) (*signalTimer, Errno) {
	t := &signalTimer{}
	notify := func(n uint64) {
		t.mu.Lock()
		t.overrun = n - 1
		t.mu.Unlock()
		switch e.Notify {
		case linux.SIGEV_SIGNAL:
			p.SendSignal(0, e.Signal)
		case linux.SIGEV_THREAD_ID:
			p.SendSignal(e.Thread, e.Signal)
		}
	}
	switch clock {
	case linux.CLOCK_REALTIME, linux.CLOCK_MONOTONIC, linux.CLOCK_BOOTTIME, linux.CLOCK_TAI:
		t.clock = &timerFD{id: clock, clock: p.clock, notify: notify}
	case linux.CLOCK_PROCESS_CPUTIME_ID:
		t.clock = &cpuTimer{now: func() time.Duration { return p.clock(clock) }, notify: notify}
	case linux.CLOCK_THREAD_CPUTIME_ID, linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_MONOTONIC_COARSE:
		return nil, linux.EOPNOTSUPP
	default:
		return nil, linux.EINVAL
	}
	return t, 0
}

// get returns the setting with the time that is left.
func (t *timerFD) get() TimerSetting {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left(time.Now())
}

// SetInterval implements setitimer(2). It returns the previous setting. Errors: EINVAL.
func (p *Process) SetInterval(which int, s TimerSetting) (TimerSetting, Errno) {
	if which < linux.ITIMER_REAL || which > linux.ITIMER_PROF || !valid(s) {
		return TimerSetting{}, linux.EINVAL
	}
	p.timers.mu.Lock()
	defer p.timers.mu.Unlock()
	t := p.timers.interval[which]
	if t == nil {
		e := Event{Notify: linux.SIGEV_SIGNAL, Signal: [...]int{linux.SIGALRM, linux.SIGVTALRM, linux.SIGPROF}[which]}
		clock := linux.CLOCK_MONOTONIC
		if which != linux.ITIMER_REAL {
			clock = linux.CLOCK_PROCESS_CPUTIME_ID
		}
		var errno Errno
		if t, errno = p.newTimer(clock, e); errno != 0 {
			return TimerSetting{}, errno
		}
		p.timers.interval[which] = t
	}
	return t.clock.set(s, false), 0
}

// GetInterval implements getitimer(2). Errors: EINVAL.
func (p *Process) GetInterval(which int) (TimerSetting, Errno) {
	if which < linux.ITIMER_REAL || which > linux.ITIMER_PROF {
		return TimerSetting{}, linux.EINVAL
	}
	p.timers.mu.Lock()
	defer p.timers.mu.Unlock()
	if t := p.timers.interval[which]; t != nil {
		return t.clock.get(), 0
	}
	return TimerSetting{}, 0
}

// CreateTimer implements timer_create(2). It returns the timer's ID. Errors: EINVAL, EAGAIN, EOPNOTSUPP.
func (p *Process) CreateTimer(clock int, e Event) (int32, Errno) {
	switch e.Notify {
	case linux.SIGEV_NONE:
	case linux.SIGEV_SIGNAL, linux.SIGEV_THREAD_ID:
		if e.Signal < 1 || e.Signal > lastSignal || e.Notify == linux.SIGEV_THREAD_ID && p.SendSignal(e.Thread, 0) != 0 {
			return -1, linux.EINVAL
		}
	default:
		return -1, linux.EINVAL
	}
	t, errno := p.newTimer(clock, e)
	if errno != 0 {
		return -1, errno
	}
	p.timers.mu.Lock()
	defer p.timers.mu.Unlock()
	if len(p.timers.created) >= maxTimers {
		return -1, linux.EAGAIN
	}
	if p.timers.created == nil {
		p.timers.created = make(map[int32]*signalTimer)
	}
	id := p.timers.last
	for p.timers.created[id] != nil {
		id = (id + 1) & (1<<31 - 1)
	}
	p.timers.created[id], p.timers.last = t, (id+1)&(1<<31-1)
	return id, 0
}

// timer returns a timer of timer_create(2). Errors: EINVAL.
func (p *Process) timer(id int32) (*signalTimer, Errno) {
	p.timers.mu.Lock()
	defer p.timers.mu.Unlock()
	if t := p.timers.created[id]; t != nil {
		return t, 0
	}
	return nil, linux.EINVAL
}

// SetTimer implements timer_settime(2). It returns the previous setting. Errors: EINVAL.
func (p *Process) SetTimer(id int32, flags int, s TimerSetting) (TimerSetting, Errno) {
	t, errno := p.timer(id)
	switch {
	case errno != 0:
		return TimerSetting{}, errno
	case !valid(s):
		return TimerSetting{}, linux.EINVAL
	}
	return t.clock.set(s, flags&linux.TFD_TIMER_ABSTIME != 0), 0 // TIMER_ABSTIME has the same value
}

// GetTimer implements timer_gettime(2). Errors: EINVAL.
func (p *Process) GetTimer(id int32) (TimerSetting, Errno) {
	t, errno := p.timer(id)
	if errno != 0 {
		return TimerSetting{}, errno
	}
	return t.clock.get(), 0
}

// TimerOverrun implements timer_getoverrun(2). Errors: EINVAL.
func (p *Process) TimerOverrun(id int32) (int, Errno) {
	const most = 1<<31 - 1
	t, errno := p.timer(id)
	if errno != 0 {
		return -1, errno
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(min(t.overrun, most)), 0
}

// DeleteTimer implements timer_delete(2). Errors: EINVAL.
func (p *Process) DeleteTimer(id int32) Errno {
	t, errno := p.timer(id)
	if errno != 0 {
		return errno
	}
	t.clock.Close()
	p.timers.mu.Lock()
	defer p.timers.mu.Unlock()
	delete(p.timers.created, id)
	return 0
}

// DropTimers ends the timers of a process that ends or executes another program.
func (p *Process) DropTimers() {
	p.timers.mu.Lock()
	defer p.timers.mu.Unlock()
	for _, t := range p.timers.created {
		t.clock.Close()
	}
	p.timers.created = nil
}

// SendSignal sends a signal to the process, or to one of its threads. Errors: ENOSYS for a process without a Sender, ESRCH.
func (p *Process) SendSignal(thread int32, signal int) Errno {
	if p.sender == nil {
		return linux.ENOSYS
	}
	return p.sender(thread, signal)
}

// cpuTimer is a timer of the CPU time of the process.
type cpuTimer struct {
	now    func() time.Duration // the CPU time
	notify func(n uint64)

	mu       sync.Mutex // guards the fields below
	at       time.Duration
	interval time.Duration
	bell     *time.Timer
}

// leastLook is the shortest time between two looks at the clock.
const leastLook = time.Millisecond

func (t *cpuTimer) Close() { t.set(TimerSetting{}, false) }

func (t *cpuTimer) get() TimerSetting {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := TimerSetting{Interval: linux.NanoTimespec(int64(t.interval))}
	if t.at != 0 {
		s.Value = linux.NanoTimespec(int64(max(t.at-t.now(), 1)))
	}
	return s
}

func (t *cpuTimer) set(s TimerSetting, absolute bool) TimerSetting {
	old := t.get()
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

// wait has look called when the timer can expire at the earliest. The caller holds mu.
func (t *cpuTimer) wait() {
	d := max((t.at-t.now())/time.Duration(cpus()), leastLook)
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
