package file

import (
	"sync/atomic"
	"time"
)

// Waiting. A task waits in Task.Wait and nowhere else. Such a wait ends in one of four ways: by its event, by its time, by a signal, or
// by the death of the thread. The last two are one case for the wait: both raise Task.Interrupt. Before a thread returns to
// its program, it looks whether it has a signal or has to end.

// Task is the task whose call waits.
type Task struct {
	// Interrupt ends a wait with Interrupted. A nil Interrupt never does.
	Interrupt *Interrupt
	// Asleep, if not nil, is called on the goroutine of the task with true before it waits, and with false afterwards.
	Asleep func(on bool)
	// Bed keeps the sleeper of the task between its waits; nil: each wait has a sleeper of its own.
	Bed *Bed
}

// Interrupt ends waits of one task. Any goroutine may raise it, and only the task waits. A raised Interrupt ends the present
// wait or the next one.
//
// A Sleeper rings the same bell for an event of a file, because the runtime waits for one channel with much less work than
// for two. So a ring alone means only that the task has to look again.
type Interrupt struct {
	bell   chan struct{} // capacity 1; Raise, sleepers and their alarms send; the task receives; never closed; if full, a ring is pending
	raised atomic.Bool   // set before the ring
}

// NewInterrupt returns an Interrupt that is not raised.
func NewInterrupt() *Interrupt { return &Interrupt{bell: make(chan struct{}, 1)} }

// Raise ends the present wait of the task, or the next one.
func (i *Interrupt) Raise() {
	i.raised.Store(true)
	i.ring()
}

// Bell returns the channel for which the task waits. A goroutine that sends to it must not block: a value that is already in the
// channel makes the task look again, too.
func (i *Interrupt) Bell() chan struct{} { return i.bell }

func (i *Interrupt) ring() {
	select {
	case i.bell <- struct{}{}:
	default:
	}
}

// Raised reports whether the next wait will end with Interrupted.
func (i *Interrupt) Raised() bool { return i.raised.Load() }

// Clear withdraws earlier calls of Raise. Only the task calls it.
func (i *Interrupt) Clear() {
	i.raised.Store(false)
	select {
	case <-i.bell:
	default:
	}
}

// taken withdraws the Interrupt if it is raised, and reports whether it was.
func (i *Interrupt) taken() bool { return i.raised.Load() && i.raised.Swap(false) }

// End is how a wait has ended.
type End uint8

// Values of End: how a wait ended.
const (
	Occurred    End = iota // the event occurred
	Late                   // the time is up
	Interrupted            // the thread was interrupted by a signal, or is about to end
)

// Wait waits until the channel event is closed or receives a value, until the channel late receives a value, or
// until an interrupt. A nil channel is never ready. If several are ready, one of them ends the wait. An interrupt
// that does not end this wait ends the next one.
func (t Task) Wait(event <-chan struct{}, late <-chan time.Time) End {
	if t.Asleep != nil {
		t.Asleep(true)
		defer t.Asleep(false)
	}
	i := t.Interrupt
	switch {
	case i == nil && late == nil: // the runtime waits for one channel with much less work than for two
		<-event
		return Occurred
	case i == nil:
		select {
		case <-event:
			return Occurred
		case <-late:
			return Late
		}
	case event == i.bell:
		return i.wait(late)
	}
	return i.waitFor(event, late)
}

// waitFor waits for an event that is reported on a channel of its own, not by the bell.
func (i *Interrupt) waitFor(event <-chan struct{}, late <-chan time.Time) End {
	for late == nil { // the runtime waits for two channels with less work than for three
		select {
		case <-event:
			return Occurred
		case <-i.bell:
			if i.taken() {
				return Interrupted
			}
		}
	}
	for {
		select {
		case <-event:
			return Occurred
		case <-late:
			return Late
		case <-i.bell:
			if i.taken() {
				return Interrupted
			}
		}
	}
}

// wait waits until the bell rings. A ring from before the wait counts as an event.
func (i *Interrupt) wait(late <-chan time.Time) End {
	if late == nil {
		<-i.bell
	} else {
		select {
		case <-i.bell:
		case <-late:
			return Late
		}
	}
	if i.taken() {
		return Interrupted
	}
	return Occurred
}

// WaitFor is Wait with a time limit. If the limit, most, is negative, there is none.
func (t Task) WaitFor(event <-chan struct{}, most time.Duration) End {
	if most < 0 {
		return t.Wait(event, nil)
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	return t.Wait(event, timer.C)
}
