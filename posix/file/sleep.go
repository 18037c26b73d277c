package file

import (
	"sync/atomic"
	"time"

	"loam/abi/linux"
)

// Sleeper is a goroutine that is blocked in a call on a file. It registers with the queue of the file once. Then it
// alternates between trying the operation and sleeping, so that an event between a try and a sleep is not lost.
type Sleeper struct {
	q *Queue
	w Watch
	// bell wakes the goroutine. The field w rings it when the queue q reports an event. It is the Interrupt of the task, or
	// another one that no signal raises.
	bell  *Interrupt
	alarm *alarm // created by the first wait with a timeout, and kept for later waits
	timed bool   // the current wait has a timeout, which alarm measures

	task Task
}

// alarm is a timer that rings a bell. A select on the bell and on a timer's channel would cost the runtime more work.
type alarm struct {
	timer *time.Timer
	late  atomic.Bool // the timer has expired
}

// newAlarm starts an alarm.
func newAlarm(d time.Duration, bell *Interrupt) *alarm {
	a := &alarm{}
	a.timer = time.AfterFunc(d, func() {
		a.late.Store(true)
		bell.ring()
	})
	return a
}

// Bed holds the Sleeper of a thread between its waits.
type Bed struct {
	free atomic.Pointer[Sleeper]
	made atomic.Bool // a Sleeper that uses the bell of the Interrupt exists
}

// NewSleeper registers a sleeper with q. A timeout of 0 means no timeout. If the sleeper was used before, a delayed
// notification of the earlier wait may cause a spurious wakeup.
func NewSleeper(q *Queue, timeout time.Duration, task Task) *Sleeper {
	var s *Sleeper
	if task.Bed != nil {
		s = task.Bed.free.Swap(nil)
	}
	if s == nil {
		s = &Sleeper{bell: task.Interrupt}
		if task.Bed == nil || s.bell == nil || task.Bed.made.Swap(true) {
			s.bell = NewInterrupt()
		}
		s.w.Notify = func(Events) { s.bell.ring() }
	}
	s.q, s.task = q, task
	if timeout > 0 {
		s.Restart(timeout)
	}
	q.Add(&s.w)
	return s
}

// Also registers the sleeper with a second queue. NotAlso removes it from that queue.
func (s *Sleeper) Also(q *Queue)    { q.Add(&s.w) }
func (s *Sleeper) NotAlso(q *Queue) { q.Remove(&s.w) }

// Sleep returns 0 when an event may have occurred, EAGAIN when the time is up, and EINTR when the task was
// interrupted.
func (s *Sleeper) Sleep() linux.Errno {
	switch {
	case s.task.Wait(s.bell.bell, nil) == Interrupted:
		return linux.EINTR
	case s.timed && s.alarm.late.Load():
		return linux.EAGAIN
	}
	return 0
}

// Restart restarts the timeout with a duration.
func (s *Sleeper) Restart(d time.Duration) {
	s.stopAlarm()
	s.timed = true
	if s.alarm == nil {
		s.alarm = newAlarm(d, s.bell)
		return
	}
	s.alarm.timer.Reset(d)
}

// stopAlarm ends the timeout. An alarm that has expired is not used again, because its function may still run.
func (s *Sleeper) stopAlarm() {
	if s.timed && !s.alarm.timer.Stop() {
		s.alarm = nil
	}
	s.timed = false
}

// Leave removes the sleeper from its queue and stops the timer.
func (s *Sleeper) Leave() {
	s.q.Remove(&s.w)
	s.stopAlarm()
	if s.task.Bed != nil {
		s.task.Bed.free.Store(s)
	}
}
