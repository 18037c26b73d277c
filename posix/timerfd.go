package posix

import (
	"encoding/binary"
	"math"
	"sync"
	"syscall"
	"time"
)

// timerFD is a timer that is read: timerfd_create(2). What it counts is made of the time that
// has passed, whenever somebody asks; a timer of Go's is there for who waits.
type timerFD struct {
	id    int // of its clock
	clock func(id int) time.Duration
	q     waitQueue

	mu       sync.Mutex    // guards what follows
	at       time.Time     // when it expires, or did first since it was read; zero: never
	interval time.Duration // 0: it expires once
	bell     *time.Timer
}

// Clocks and flags of timerfd_create(2) that package syscall lacks.
const (
	ClockRealtime  = 0
	ClockMonotonic = 1
	ClockBoottime  = 7

	clockRealtimeAlarm = 8
	clockBoottimeAlarm = 9

	tfdAbsolute    = 1
	tfdCancelOnSet = 2
	timerSize      = 8 // what is read is a uint64
)

// TimerSetting is struct itimerspec: when a timer expires, and after what time again. Value
// 0 means never, Interval 0 once.
type TimerSetting struct{ Interval, Value syscall.Timespec }

// valid reports whether Linux takes it.
func (s TimerSetting) valid() bool {
	for _, t := range [...]syscall.Timespec{s.Interval, s.Value} {
		if t.Sec < 0 || t.Nsec < 0 || t.Nsec >= int64(time.Second) {
			return false
		}
	}
	return true
}

// spanOf is the length of a valid time, as much as a Duration holds.
func spanOf(t syscall.Timespec) time.Duration {
	if t.Sec >= math.MaxInt64/int64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(t.Nano())
}

// TimerFDCreate is timerfd_create(2). Errors: EINVAL; EPERM for clocks that wake a machine.
func (p *Process) TimerFDCreate(clock, flags int) (int, Errno) {
	if flags&^(syscall.O_CLOEXEC|syscall.O_NONBLOCK) != 0 {
		return -1, syscall.EINVAL
	}
	switch clock {
	case ClockRealtime, ClockMonotonic, ClockBoottime:
	case clockRealtimeAlarm, clockBoottimeAlarm:
		return -1, syscall.EPERM
	default:
		return -1, syscall.EINVAL
	}
	return p.install(&timerFD{id: clock, clock: p.options.Clock}, flags)
}

// TimerFDSet is timerfd_settime(2), and returns what was set before. Errors: EBADF, EINVAL.
func (p *Process) TimerFDSet(fd, flags int, s TimerSetting) (TimerSetting, Errno) {
	if flags&^(tfdAbsolute|tfdCancelOnSet) != 0 || !s.valid() {
		return TimerSetting{}, syscall.EINVAL
	}
	t, errno := p.timerFD(fd)
	if errno != 0 {
		return TimerSetting{}, errno
	}
	return t.set(s, flags&tfdAbsolute != 0), 0
}

// TimerFDGet is timerfd_gettime(2). Errors: EBADF, EINVAL.
func (p *Process) TimerFDGet(fd int) (TimerSetting, Errno) {
	t, errno := p.timerFD(fd)
	if errno != 0 {
		return TimerSetting{}, errno
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left(time.Now()), 0
}

func (p *Process) timerFD(fd int) (*timerFD, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	t, ok := o.file.(*timerFD)
	if !ok {
		return nil, syscall.EINVAL
	}
	return t, 0
}

func (t *timerFD) queue() *waitQueue { return &t.q }
func (t *timerFD) mode() uint32      { return 0o600 }

func (t *timerFD) write([]byte) (int, Errno) { return 0, syscall.EINVAL }

func (t *timerFD) events() Events {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expired(time.Now()) > 0 {
		return PollIn
	}
	return 0
}

func (t *timerFD) read(b []byte) (int, Errno) {
	if len(b) < timerSize {
		return 0, syscall.EINVAL
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.expired(time.Now())
	switch {
	case n == 0:
		return 0, syscall.EAGAIN
	case t.interval == 0:
		t.at = time.Time{}
	default:
		t.at = t.at.Add(time.Duration(n) * t.interval)
		t.arm(time.Now())
	}
	binary.NativeEndian.PutUint64(b, n)
	return timerSize, 0
}

func (t *timerFD) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disarm()
}

// expired is how often the timer has expired and nobody has read of it.
func (t *timerFD) expired(now time.Time) uint64 {
	switch {
	case t.at.IsZero() || now.Before(t.at):
		return 0
	case t.interval == 0:
		return 1
	}
	return 1 + uint64(now.Sub(t.at)/t.interval)
}

// left is what is set, with the time until it expires next.
func (t *timerFD) left(now time.Time) TimerSetting {
	s := TimerSetting{Interval: syscall.NsecToTimespec(int64(t.interval))}
	if t.at.IsZero() {
		return s
	}
	next := t.at
	if t.interval > 0 {
		next = next.Add(time.Duration(t.expired(now)) * t.interval)
	}
	s.Value = syscall.NsecToTimespec(max(0, int64(next.Sub(now))))
	return s
}

func (t *timerFD) set(s TimerSetting, absolute bool) (old TimerSetting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	old = t.left(now)
	t.disarm()
	t.at, t.interval = time.Time{}, spanOf(s.Interval)
	value := spanOf(s.Value)
	switch {
	case value == 0:
		return old
	case !absolute:
		t.at = now.Add(value)
	case t.id == ClockRealtime:
		t.at = time.Unix(0, int64(value)) // which is compared with the wall clock
	default:
		t.at = now.Add(value - t.clock(t.id))
	}
	t.arm(now)
	return old
}

// arm has ring called when the timer expires.
func (t *timerFD) arm(now time.Time) {
	if wait := t.at.Sub(now); t.bell == nil {
		t.bell = time.AfterFunc(wait, t.ring)
	} else {
		t.bell.Reset(wait)
	}
}

func (t *timerFD) disarm() {
	if t.bell != nil {
		t.bell.Stop()
	}
}

// ring tells who waits. It is called too early if the timer was set anew just before, or the
// wall clock set back.
func (t *timerFD) ring() {
	t.mu.Lock()
	now := time.Now()
	due := t.expired(now) > 0
	if !due && !t.at.IsZero() {
		t.arm(now)
	}
	t.mu.Unlock()
	if due {
		t.q.tell(PollIn)
	}
}
