package posix

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// watch is one entry of a waitQueue.
type watch struct {
	// f is told which events have begun. It must not block and not call the
	// file. An event may have passed already.
	f func(Events)
}

// waitQueue holds those who want to know when a file becomes ready. Telling
// them takes no lock: the list is replaced, never changed.
type waitQueue struct {
	mu   sync.Mutex // guards replacing the list
	list atomic.Pointer[[]*watch]
	edge atomic.Bool // somebody expects to be told at every arrival, not just the first

	wanted func() // if it is there, called after each add: there is somebody to tell
}

func (q *waitQueue) add(w *watch) {
	q.insert(w)
	if q.wanted != nil {
		q.wanted()
	}
}

func (q *waitQueue) insert(w *watch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []*watch
	if old := q.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = append(list, w)
	q.list.Store(&list)
}

func (q *waitQueue) remove(w *watch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.list.Load()
	if old == nil {
		return
	}
	list := slices.Clone(*old)
	list = slices.DeleteFunc(list, func(x *watch) bool { return x == w })
	q.list.Store(&list)
}

// tell calls everybody.
func (q *waitQueue) tell(e Events) {
	list := q.list.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		w.f(e)
	}
}

// sleeper is a goroutine that waits for a file because the program asked to be
// blocked. It enters the queue once, then tries and sleeps in turns, so no event
// is lost between a try and a sleep.
type sleeper struct {
	q     *waitQueue
	w     watch
	bell  chan struct{} // sent to by whoever tells the queue, received by the sleeper, never closed; full: it will look anyway
	timer *time.Timer   // nil: sleep for ever
}

// newSleeper enters q. A timeout of zero means for ever.
func newSleeper(q *waitQueue, timeout time.Duration) *sleeper {
	s := &sleeper{q: q, bell: make(chan struct{}, 1)}
	s.w.f = func(Events) {
		select {
		case s.bell <- struct{}{}:
		default:
		}
	}
	if timeout > 0 {
		s.timer = time.NewTimer(timeout)
	}
	q.add(&s.w)
	return s
}

// sleep returns true when something may have happened, false when time is up.
func (s *sleeper) sleep() bool {
	if s.timer == nil {
		<-s.bell
		return true
	}
	select {
	case <-s.bell:
		return true
	case <-s.timer.C:
		return false
	}
}

func (s *sleeper) leave() {
	s.q.remove(&s.w)
	if s.timer != nil {
		s.timer.Stop()
	}
}
