package timer

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"loam/abi/linux"
	"loam/posix/file"
)

// File is a timer file (timerfd_create(2)). The number of expirations is computed from the current
// time when it is needed. A Go timer runs only to wake waiters.
type File struct {
	id    int // ID of the timer's clock (clock_gettime(2))
	clock Clock
	q     file.Queue
	// notify, if not nil, is called when the timer expires, with the number of expirations since the last call. The timer is
	// then not read.
	notify func(n uint64)

	mu       sync.Mutex    // guards the fields below
	at       time.Time     // time of the first expiration that has not been read; zero: the timer is disarmed
	flags    int           // TFD_TIMER_* flags of the last setting
	interval time.Duration // 0: the timer expires once
	bell     *time.Timer   // calls ring; nil until the timer is first armed
	closed   bool          // the timer can no longer be armed
}

// Size of a read, in bytes.
const (
	timerSize = 8 // a read returns a uint64
)

// Setting is struct itimerspec: the time until the timer expires, and the interval after that.
// Value 0 disarms the timer. Interval 0 means that it expires once.
type Setting = linux.Itimerspec

// Valid reports whether Linux accepts the setting.
func Valid(s Setting) bool {
	for _, t := range [...]linux.Timespec{s.Interval, s.Value} {
		if t.Sec < 0 || t.Nsec < 0 || t.Nsec >= int64(time.Second) {
			return false
		}
	}
	return true
}

// spanOf converts a valid time to a Duration. It returns the maximum if the time does not fit.
func spanOf(t linux.Timespec) time.Duration {
	if t.Sec >= math.MaxInt64/int64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(t.Nano())
}

// NewFile returns a timer that is not armed, by the clock with an ID.
func NewFile(id int, clock Clock) *File { return &File{id: id, clock: clock} }

// Name implements file.Named.
func (t *File) Name() string { return "anon_inode:[timerfd]" }

// Details implements file.Detailed.
func (t *File) Details() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	left := t.left(now)
	return fmt.Sprintf("clockid: %d\nticks: %d\nsettime flags: 0%o\nit_value: (%d, %d)\nit_interval: (%d, %d)\n", t.id, t.expired(now), t.flags,
		left.Value.Sec, left.Value.Nsec, left.Interval.Sec, left.Interval.Nsec)
}

func (t *File) Queue() *file.Queue { return &t.q }
func (t *File) Mode() uint32       { return 0o600 }

func (t *File) Write([]byte) (int, linux.Errno) { return 0, linux.EINVAL }

func (t *File) Events() file.Events {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expired(time.Now()) > 0 {
		return linux.POLLIN // without POLLRDNORM, as on Linux
	}
	return 0
}

// Read returns the number of expirations since the last read. Errors: EAGAIN if there were none, EINVAL
// for a short buffer.
func (t *File) Read(b []byte) (int, linux.Errno) {
	if len(b) < timerSize {
		return 0, linux.EINVAL
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.expired(time.Now())
	if n == 0 {
		return 0, linux.EAGAIN
	}
	t.take(n)
	binary.NativeEndian.PutUint64(b, n)
	return timerSize, 0
}

func (t *File) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed, t.at = true, time.Time{}
	t.disarm()
}

// expired returns the number of expirations that have not been read. The caller holds mu.
func (t *File) expired(now time.Time) uint64 {
	switch {
	case t.at.IsZero() || now.Before(t.at):
		return 0
	case t.interval == 0:
		return 1
	}
	return 1 + uint64(now.Sub(t.at)/t.interval)
}

// left returns the setting with the time until the next expiration. The caller holds mu.
func (t *File) left(now time.Time) Setting {
	s := Setting{Interval: linux.NanoTimespec(int64(t.interval))}
	if t.at.IsZero() {
		return s
	}
	next := t.at
	if t.interval > 0 {
		next = next.Add(time.Duration(t.expired(now)) * t.interval)
	}
	s.Value = linux.NanoTimespec(max(0, int64(next.Sub(now))))
	return s
}

// Get returns the setting with the time until the next expiration.
func (t *File) Get() Setting {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left(time.Now())
}

// Set arms or disarms the timer and returns the previous setting. With TFD_TIMER_ABSTIME in flags, Value is a time of the
// timer's clock; TFD_TIMER_CANCEL_ON_SET has no effect. Errors: EINVAL after Close.
func (t *File) Set(s Setting, flags int) (old Setting, errno linux.Errno) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return Setting{}, linux.EINVAL
	}
	now := time.Now()
	old = t.left(now)
	t.disarm()
	t.at, t.interval, t.flags = time.Time{}, spanOf(s.Interval), flags
	value := spanOf(s.Value)
	switch {
	case value == 0:
		return old, 0
	case flags&linux.TFD_TIMER_ABSTIME == 0:
		t.at = now.Add(value)
	case t.id == linux.CLOCK_REALTIME, t.id == linux.CLOCK_TAI:
		t.at = time.Unix(0, int64(value)) // a time without a monotonic reading, so that it is compared with the wall clock
	default:
		t.at = now.Add(value - t.clock(t.id))
	}
	t.arm(now)
	return old, 0
}

// arm starts the Go timer that calls ring at the next expiration. The caller holds mu.
func (t *File) arm(now time.Time) {
	if wait := t.at.Sub(now); t.bell == nil {
		t.bell = time.AfterFunc(wait, t.ring)
	} else {
		t.bell.Reset(wait)
	}
}

func (t *File) disarm() {
	if t.bell != nil {
		t.bell.Stop()
	}
}

// ring wakes the waiters. It runs too early if the timer was just set again or the wall clock was set
// back; then it arms the Go timer again.
func (t *File) ring() {
	t.mu.Lock()
	now := time.Now()
	n := t.expired(now)
	switch {
	case n == 0 && !t.at.IsZero():
		t.arm(now)
	case n > 0 && t.notify != nil:
		t.take(n)
	}
	t.mu.Unlock()
	switch {
	case n == 0:
	case t.notify != nil:
		t.notify(n)
	default:
		t.q.Notify(file.PollIn)
	}
}

// take subtracts n from the number of unread expirations. The caller holds mu.
func (t *File) take(n uint64) {
	if t.interval == 0 {
		t.at = time.Time{}
		return
	}
	t.at = t.at.Add(time.Duration(n) * t.interval)
	t.arm(time.Now())
}
