package posix

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
)

// Waiting without lost wakeups. A waiter first adds its watch to the queue of the file, and only then tries
// the call or asks for events. An event before the try is found by the try, and an event after it is
// reported to the watch. A report may be spurious, so a waiter always tries again.
//
// A file reports an event after the change is visible. A watch runs on the goroutine that caused the
// event, which is often a shard of the stack. So a watch must neither block nor take the lock of a file.
//
// Rejected: a condition variable for each file, because epoll and the runtime's poller need a callback, and
// one mechanism serves all waiters.

// watch is an entry of a waitQueue.
type watch struct {
	// f is called with the events that have occurred. It must not block and must not call the file. An
	// event may have passed already.
	f func(Events)
	// alone is the list of a queue that holds only this watch. It is made once, so that most waits allocate nothing.
	alone []*watch
}

// waitQueue holds the watches of the waiters on a file. Notifying them takes no lock: the list is
// replaced, never modified.
type waitQueue struct {
	mu   sync.Mutex // guards replacing the list
	list atomic.Pointer[[]*watch]
	edge atomic.Bool // a waiter wants a notification for every arrival (edge-triggered), not only the first

	wanted func() // if not nil, called after each add: the file now needs to report events
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
	old := q.list.Load()
	if old == nil {
		if w.alone == nil {
			w.alone = []*watch{w}
		}
		q.list.Store(&w.alone)
		return
	}
	list := append(slices.Clone(*old), w)
	q.list.Store(&list)
}

func (q *waitQueue) remove(w *watch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.list.Load()
	switch {
	case old == nil:
		return
	case len(*old) == 1 && (*old)[0] == w:
		q.list.Store(nil)
		return
	}
	list := slices.DeleteFunc(slices.Clone(*old), func(x *watch) bool { return x == w })
	if len(list) == 0 {
		q.list.Store(nil)
		return
	}
	q.list.Store(&list)
}

// tell notifies all watches.
func (q *waitQueue) tell(e Events) {
	list := q.list.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		w.f(e)
	}
}

// sleeper is a goroutine blocked in a call on a file. It registers once, and then alternates between
// trying and sleeping. So no event is lost between a try and a sleep.
type sleeper struct {
	q     *waitQueue
	w     watch
	bell  chan struct{} // capacity 1; the watch sends, the sleeper receives; never closed; full: it will look anyway
	timer *time.Timer   // nil: no timeout

	interrupt <-chan struct{} // of the task; see Process
	who       *identity
	bed       *bed // where leave puts it; nil: nowhere
}

// bed keeps the sleeper of a task between its waits.
type bed struct {
	free atomic.Pointer[sleeper]
}

// newSleeper registers with q. A timeout of 0 means forever. A late event of an earlier wait may still ring the bell of a
// sleeper that is used again, which is a spurious event.
func (p *Process) newSleeper(q *waitQueue, timeout time.Duration) *sleeper {
	var s *sleeper
	if p.bed != nil {
		s = p.bed.free.Swap(nil)
	}
	if s == nil {
		s = &sleeper{bell: make(chan struct{}, 1), bed: p.bed}
		s.w.f = func(Events) {
			select {
			case s.bell <- struct{}{}:
			default:
			}
		}
	}
	s.q, s.interrupt, s.who = q, p.interrupt, p.who
	if timeout > 0 {
		s.timer = time.NewTimer(timeout)
	}
	q.add(&s.w)
	return s
}

// sleep returns 0 when an event may have occurred, EAGAIN when the time is up, and EINTR when the task was
// interrupted.
func (s *sleeper) sleep() Errno {
	s.who.asleep(true)
	defer s.who.asleep(false)
	if s.timer == nil && s.interrupt == nil {
		<-s.bell
		return 0
	}
	if s.timer == nil { // the runtime handles two channels faster than three
		select {
		case <-s.bell:
			return 0
		case <-s.interrupt:
			return linux.EINTR
		}
	}
	select {
	case <-s.bell:
		return 0
	case <-s.timer.C:
		return linux.EAGAIN
	case <-s.interrupt:
		return linux.EINTR
	}
}

func (s *sleeper) leave() {
	s.q.remove(&s.w)
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.bed != nil {
		s.bed.free.Store(s)
	}
}
