package file

import (
	"slices"
	"sync"
	"sync/atomic"
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

// Watch is an entry of a Queue.
type Watch struct {
	// Notify is called with the events that have occurred. It must not block and must not call a method of the file. When it
	// runs, the event may already be over.
	Notify func(Events)
	// Exclusive, if not nil, is called instead of Notify, under the same rules. It reports whether it has woken a waiter that will
	// ask the file for this event. Queue.Notify calls the exclusive watches in the order of their registration, until one returns
	// true.
	Exclusive func(Events) bool
	// alone is a list with self as its only element. A queue whose only watch is this one uses it, so most waits allocate no
	// list.
	alone []*Watch
	self  [1]*Watch
}

// Queue holds the watches of the waiters on a file. Notifying them takes no lock: the list is
// replaced, never modified.
type Queue struct {
	mu   sync.Mutex // held while the list is replaced
	list atomic.Pointer[[]*Watch]
	edge atomic.Bool // a waiter needs a notification for every arrival of data (edge-triggered), not only for the first

	owned atomic.Bool // the file has an owner, which gets signals (F_SETOWN)

	wanted func() // if not nil, called after each Add, because the file must report events from then on
}

// OnAdd sets a function that Add calls at its end. It must be set before the first Add.
func (q *Queue) OnAdd(f func()) { q.wanted = f }

// WantEvery makes the file report every arrival of data, and not only the first, until it is read. wantsEvery reports
// whether a waiter has called WantEvery.
func (q *Queue) WantEvery()       { q.edge.Store(true) }
func (q *Queue) WantsEvery() bool { return q.edge.Load() }

// Owned reports whether the file has an owner, which gets signals (F_SETOWN).
func (q *Queue) Owned() bool { return q.owned.Load() }

// Add registers a watch.
func (q *Queue) Add(w *Watch) {
	q.mu.Lock()
	q.list.Store(q.with(w))
	q.mu.Unlock()
	if q.wanted != nil {
		q.wanted()
	}
}

// Remove ends the registration of a watch.
func (q *Queue) Remove(w *Watch) {
	q.mu.Lock()
	q.list.Store(q.without(w))
	q.mu.Unlock()
}

// with returns the list of the queue with one more watch. The caller holds mu.
func (q *Queue) with(w *Watch) *[]*Watch {
	old := q.list.Load()
	if old == nil {
		if w.alone == nil {
			w.self[0] = w
			w.alone = w.self[:]
		}
		return &w.alone
	}
	list := append(slices.Clone(*old), w)
	return &list
}

// without returns the list of the queue without a watch; nil: the list is empty. The caller holds mu.
func (q *Queue) without(w *Watch) *[]*Watch {
	old := q.list.Load()
	if old == nil || len(*old) == 1 && (*old)[0] == w {
		return nil
	}
	list := slices.DeleteFunc(slices.Clone(*old), func(x *Watch) bool { return x == w })
	if len(list) == 0 {
		return nil
	}
	return &list
}

// Notify notifies all watches. If data or room has arrived, and not both, exclusive watches are notified only until one has woken a
// waiter. Errors and the end of the file concern all.
func (q *Queue) Notify(e Events) {
	list := q.list.Load()
	if list == nil {
		return
	}
	served := false
	for _, w := range *list {
		switch {
		case w.Exclusive == nil:
			w.Notify(e)
		case !served:
			served = w.Exclusive(e) && e.oneSuffices()
		}
	}
}

// NotifyExclusive is Notify for the exclusive watches alone.
func (q *Queue) NotifyExclusive(e Events) {
	list := q.list.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		if w.Exclusive != nil && w.Exclusive(e) && e.oneSuffices() {
			return
		}
	}
}
