package file

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/internal/race"
)

// recorder is a watch that records the events of its queues.
type recorder struct {
	Watch
	got []Events
}

func newRecorder() *recorder {
	r := &recorder{}
	r.Notify = func(e Events) { r.got = append(r.got, e) }
	return r
}

// A watch is notified while it is registered, whatever other watches come and go.
func TestQueue(t *testing.T) {
	var q Queue
	a, b := newRecorder(), newRecorder()
	q.Notify(1)
	q.Add(&a.Watch)
	q.Notify(2)
	q.Add(&b.Watch)
	q.Notify(3)
	q.Remove(&a.Watch)
	q.Notify(4)
	q.Remove(&a.Watch) // a has been removed already, so this has no effect
	q.Remove(&b.Watch)
	q.Notify(5)
	q.Add(&a.Watch)
	q.Notify(6)
	if !slices.Equal(a.got, []Events{2, 3, 6}) || !slices.Equal(b.got, []Events{3, 4}) {
		t.Errorf("%v, %v", a.got, b.got)
	}
}

// A watch may be in several queues, and in one of them twice, as when poll(2) is called with the same descriptor
// twice.
func TestWatchInSeveralQueues(t *testing.T) {
	var p, q Queue
	w := newRecorder()
	p.Add(&w.Watch)
	q.Add(&w.Watch)
	q.Add(&w.Watch)
	p.Notify(1)
	q.Notify(2)
	q.Remove(&w.Watch)
	q.Notify(3)
	p.Notify(4)
	if !slices.Equal(w.got, []Events{1, 2, 2, 4}) {
		t.Errorf("%v", w.got)
	}
}

// A sleeper, with which a task waits, returns after an event, a timeout or an interrupt. It can be used for the next
// wait.
func TestSleeperIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		interrupt := NewInterrupt()
		task := Task{Interrupt: interrupt, Bed: &Bed{}}
		wait := func(timeout time.Duration, during func()) (linux.Errno, time.Duration) {
			s := NewSleeper(&q, timeout, task)
			defer s.Leave()
			started := time.Now()
			go during()
			errno := s.Sleep()
			return errno, time.Since(started)
		}
		event := func() { time.Sleep(time.Second); q.Notify(PollIn) }
		signal := func() { time.Sleep(time.Second); interrupt.Raise() }
		for _, c := range []struct {
			timeout time.Duration
			during  func()
			errno   linux.Errno
			after   time.Duration
		}{
			{0, event, 0, time.Second},
			{2 * time.Second, event, 0, time.Second},
			{3 * time.Second, func() {}, linux.EAGAIN, 3 * time.Second},
			{0, signal, linux.EINTR, time.Second},
			{500 * time.Millisecond, func() {}, linux.EAGAIN, 500 * time.Millisecond},
			{5 * time.Second, signal, linux.EINTR, time.Second},
			{0, event, 0, time.Second},
		} {
			if errno, after := wait(c.timeout, c.during); errno != c.errno || after != c.after {
				t.Errorf("timeout %v: %v after %v, want %v after %v", c.timeout, errno, after, c.errno, c.after)
			}
		}
	})
}

// If a wait of a task begins inside another wait of the same task, each wait has a Sleeper of its own.
func TestSleeperInASleeper(t *testing.T) {
	var p, q Queue
	task := Task{Interrupt: NewInterrupt(), Bed: &Bed{}}
	outer := NewSleeper(&p, 0, task)
	inner := NewSleeper(&q, 0, task)
	if outer == inner {
		t.Fatal("one sleeper for both")
	}
	inner.Leave()
	p.Notify(PollIn)
	if errno := outer.Sleep(); errno != 0 {
		t.Error(errno)
	}
	outer.Leave()
}

func TestWaitAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var q Queue
	task := Task{Interrupt: NewInterrupt(), Bed: &Bed{}}
	wait := func() {
		s := NewSleeper(&q, time.Hour, task)
		q.Notify(PollIn)
		s.Sleep()
		s.Leave()
	}
	wait()
	if n := testing.AllocsPerRun(100, wait); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
