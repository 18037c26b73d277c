package file

import "time"

// Waiting. A task waits in Task.Wait and nowhere else. Such a wait ends in one of four ways: by its event, by its time, by a signal, or
// by the death of the thread. The last two are one case for the wait: both send to Task.Interrupt. Before a thread returns to
// its program, it looks whether it has a signal or has to end.

// Task is the task whose call waits.
type Task struct {
	// Interrupt ends a wait with Interrupted. A nil channel never interrupts.
	Interrupt <-chan struct{}
	// Asleep, if not nil, is called on the goroutine of the task with true before it waits, and with false afterwards.
	Asleep func(on bool)
	// Bed keeps the sleeper of the task between its waits; nil: each wait has a sleeper of its own.
	Bed *Bed
}

// End is how a wait has ended.
type End uint8

// Ends of a wait.
const (
	Occurred    End = iota // the event occurred
	Late                   // the time is up
	Interrupted            // the thread was interrupted by a signal, or is about to end
)

// Wait waits until event is closed or receives a value, until late receives a value, or until an interrupt. A nil
// channel is never ready. If several are ready, one of them ends the wait. An interrupt that does not end this wait
// ends the next one.
func (t Task) Wait(event <-chan struct{}, late <-chan time.Time) End {
	if t.Asleep != nil {
		t.Asleep(true)
		defer t.Asleep(false)
	}
	switch {
	case late == nil && t.Interrupt == nil:
		<-event
		return Occurred
	case late == nil: // the runtime handles two channels faster than three
		select {
		case <-event:
			return Occurred
		case <-t.Interrupt:
			return Interrupted
		}
	}
	select {
	case <-event:
		return Occurred
	case <-late:
		return Late
	case <-t.Interrupt:
		return Interrupted
	}
}

// WaitFor is Wait with a time limit. If most is negative, there is no limit.
func (t Task) WaitFor(event <-chan struct{}, most time.Duration) End {
	if most < 0 {
		return t.Wait(event, nil)
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	return t.Wait(event, timer.C)
}
