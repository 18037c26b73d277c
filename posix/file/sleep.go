package file

import (
	"sync/atomic"
	"time"

	"loam/abi/linux"
)

// Sleeper is a goroutine blocked in a call on a file. It registers once, and then alternates between
// trying and sleeping. So no event is lost between a try and a sleep.
type Sleeper struct {
	q     *Queue
	w     Watch
	bell  chan struct{} // capacity 1; the watch sends, the sleeper receives; never closed; full: it will look anyway
	timer *time.Timer   // kept for later waits; nil before the first with a timeout
	timed bool          // this wait has a timeout, by timer

	task Task
}

// Bed keeps the sleeper of a task between its waits.
type Bed struct {
	free atomic.Pointer[Sleeper]
}

// NewSleeper registers with q. A timeout of 0 means forever. A late event of an earlier wait may still ring the bell of a
// sleeper that is used again, which is a spurious event.
func NewSleeper(q *Queue, timeout time.Duration, task Task) *Sleeper {
	var s *Sleeper
	if task.Bed != nil {
		s = task.Bed.free.Swap(nil)
	}
	if s == nil {
		s = &Sleeper{bell: make(chan struct{}, 1)}
		s.w.Notify = func(Events) {
			select {
			case s.bell <- struct{}{}:
			default:
			}
		}
	}
	s.q, s.task = q, task
	if timeout > 0 {
		s.Restart(timeout)
	}
	q.Add(&s.w)
	return s
}

// Also registers with a second queue, and NotAlso ends that.
func (s *Sleeper) Also(q *Queue)    { q.Add(&s.w) }
func (s *Sleeper) NotAlso(q *Queue) { q.Remove(&s.w) }

// Sleep returns 0 when an event may have occurred, EAGAIN when the time is up, and EINTR when the task was
// interrupted.
func (s *Sleeper) Sleep() linux.Errno {
	var late <-chan time.Time
	if s.timed {
		late = s.timer.C
	}
	switch s.task.Wait(s.bell, late) {
	case Late:
		return linux.EAGAIN
	case Interrupted:
		return linux.EINTR
	}
	return 0
}

// Restart sets the timer.
func (s *Sleeper) Restart(d time.Duration) {
	s.timed = true
	if s.timer == nil {
		s.timer = time.NewTimer(d)
		return
	}
	s.timer.Reset(d)
}

// Leave ends the registration.
func (s *Sleeper) Leave() {
	s.q.Remove(&s.w)
	if s.timed {
		s.timer.Stop()
		s.timed = false
	}
	if s.task.Bed != nil {
		s.task.Bed.free.Store(s)
	}
}
