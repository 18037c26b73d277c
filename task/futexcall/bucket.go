package futexcall

import (
	"sync"
	"sync/atomic"

	"loam/mem"
	"loam/task/futex"
)

// The queues of waiters and their locks. Plain futexes are in buckets, selected by a hash of the location, with a lock for
// each bucket. PI futexes have one table, because a chain of owners and waiters may connect all of them.
//
// Lock order: buckets in the order of their numbers, then locks.mu, then the lock of the system (Objects.thread). A word of a
// process is read and changed with these locks held, but no page is loaded and no thread waits.

// waiter is a thread that waits for a futex. Its field Place is the number of its bucket plus one, or inLocks. It changes only
// with the lock of that place held, and of the new place, if there is one.
type waiter = futex.Waiter[mem.Location]

const (
	buckets = 256
	inLocks = buckets + 1 // value of waiter.Place in the table of PI futexes
)

// Objects is the set of futexes of a system.
type Objects struct {
	buckets [buckets]bucket
	locks   locks
	thread  func(id uint32) Caller
}

// bucket holds the waiters of the plain futexes with the same hash.
type bucket struct {
	mu    sync.Mutex
	table futex.Table[mem.Location]
	_     [64]byte // different buckets are in different cache lines
}

// locks holds the waiters of PI futexes.
type locks struct {
	mu      sync.Mutex
	table   futex.Table[mem.Location]
	waiting map[uint32]*waiter // the waiters in table, by thread
	some    atomic.Bool        // table is not empty
}

// New returns the futexes of a system. thread returns a thread that has not ended, or nil.
func New(thread func(id uint32) Caller) *Objects {
	return &Objects{thread: thread, locks: locks{waiting: map[uint32]*waiter{}}}
}

// Empty reports whether no thread waits.
func (o *Objects) Empty() bool {
	for i := range o.buckets {
		b := &o.buckets[i]
		b.mu.Lock()
		empty := b.table.Empty()
		b.mu.Unlock()
		if !empty {
			return false
		}
	}
	return !o.locks.some.Load()
}

// index returns the number of the bucket of a futex.
func index(key mem.Location) uint32 { return uint32(key.Hash() % buckets) }

// of returns the bucket of a futex.
func (o *Objects) of(key mem.Location) *bucket { return &o.buckets[index(key)] }

// lockBoth locks the buckets of two futexes, which may be the same, and returns them with a function that unlocks them.
func (o *Objects) lockBoth(a, b mem.Location) (first, second *bucket, unlock func()) {
	i, j := index(a), index(b)
	low, high := &o.buckets[min(i, j)], &o.buckets[max(i, j)]
	low.mu.Lock()
	if i == j {
		return low, low, low.mu.Unlock
	}
	high.mu.Lock()
	return &o.buckets[i], &o.buckets[j], func() { high.mu.Unlock(); low.mu.Unlock() }
}

// enqueue adds a waiter to the queue of a plain futex. The caller holds the lock of the bucket.
func (b *bucket) enqueue(key mem.Location, w *waiter, bits uint32) {
	b.table.Wait(key, w, bits)
	w.Place.Store(index(key) + 1)
}

// plain reports whether a futex, which belongs to the bucket b, has only waiters of FUTEX_WAIT. The caller holds the lock of
// the bucket.
func (o *Objects) plain(b *bucket, key mem.Location) bool {
	if !b.table.Plain(key) {
		return false
	}
	l := &o.locks
	if !l.some.Load() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.Count(key) == 0
}

// wake resumes a waiter that was removed from its queue. After the store, the thread may use the waiter for another wait.
func wake(w *waiter) {
	w.Place.Store(0)
	select {
	case w.Woken <- struct{}{}:
	default: // the thread has not yet received an earlier value, and will look again
	}
}

// rouse resumes waiters that were removed from the queues. The caller holds the lock of their bucket.
func rouse(all []*waiter) int {
	for _, w := range all {
		wake(w)
	}
	return len(all)
}

// cancel removes a waiter from its queue. It returns false if the waiter was woken before.
func (o *Objects) cancel(w *waiter) bool {
	for {
		switch place := w.Place.Load(); place {
		case 0:
			return false
		case inLocks:
			if o.locks.cancel(w) {
				return true
			}
		default:
			if o.buckets[place-1].cancel(w, place) {
				return true
			}
		}
	}
}

// cancel removes a waiter from the bucket, if it is still there.
func (b *bucket) cancel(w *waiter, place uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.Place.Load() != place {
		return false
	}
	b.table.Cancel(w)
	w.Place.Store(0)
	return true
}

// cancel removes a waiter from the table, if it is still there.
func (l *locks) cancel(w *waiter) bool {
	l.mu.Lock()
	defer l.unlock()
	if w.Place.Load() != inLocks {
		return false
	}
	l.table.Cancel(w)
	l.forget(w)
	return true
}

// unlock unlocks the table after a change.
func (l *locks) unlock() {
	l.some.Store(!l.table.Empty())
	l.mu.Unlock()
}

// enqueue adds a waiter for a PI futex. The caller holds mu.
func (l *locks) enqueue(key mem.Location, w *waiter, owner uint32) {
	l.table.WaitLock(key, w, owner)
	l.waiting[w.Thread] = w
	w.Place.Store(inLocks)
}

// forget records that a waiter was removed from the table. The caller holds mu.
func (l *locks) forget(w *waiter) {
	delete(l.waiting, w.Thread)
	w.Place.Store(0)
}

// pass resumes a waiter that was removed from the table because it has got its futex. The caller holds mu.
func (l *locks) pass(w *waiter) {
	delete(l.waiting, w.Thread)
	wake(w)
}

// waiterOf returns the waiter of a thread that waits for a PI futex, or nil. The caller holds mu.
func (l *locks) waiterOf(thread uint32) *waiter { return l.waiting[thread] }
