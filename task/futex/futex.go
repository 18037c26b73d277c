// Package futex keeps the queues of threads that wait for futexes (futex(2)).
//
// It is a pure state machine, which does not wait and takes no lock: a Table holds waiters by key, operations
// return the waiters to be woken, and the caller blocks and wakes threads, with one lock around a Table. To
// wait without missing a wake, the caller compares the futex's word and calls Wait under that lock, and so
// does a waker that changes the word in the kernel (FUTEX_WAKE_OP, PI, the end of a thread).
//
// A key is any comparable value that names the word's memory; mem.Location is one.
//
// # Priority inheritance
//
// A PI futex's word holds the owner's thread ID, a bit for waiters and one for an owner that died. Unlocking hands
// the word to the waiter with the highest priority, in order of arrival among equals.
// Ownership never passes through an unlocked word while a thread waits. The priority that the owner inherits is
// Table.Highest; the scheduler of this kernel has no priorities, so nothing else follows from it.
//
// # Robust futexes
//
// A thread registers a list of the locks that it holds, in its own memory. When it ends, WalkRobust follows the list in bounded
// time, even if it is damaged, and DiedOwner returns the new value of the word of each lock.
package futex

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// Bits of the word of a PI or robust futex.
const (
	Waiters   = 0x80000000
	OwnerDied = 0x40000000
	Owner     = 0x3fffffff // bits of the word that contain the thread ID of the owner
)

// AnyBit is the bitset of waits and wakes without a bitset argument.
const AnyBit = ^uint32(0)

// Waiter is one thread that waits. It is in at most one queue.
type Waiter[K comparable] struct {
	Thread   uint32 // thread ID, for a PI futex
	Priority int    // for a PI futex: the waiter with the highest priority gets the lock first

	// Woken belongs to the caller, which blocks and wakes the thread with it.
	Woken chan struct{}

	// Place belongs to the caller, which may have several tables: the number of the one that contains the waiter. 0: none.
	Place atomic.Uint32

	// Word is the address of the futex word in the memory of the thread. It is set for a PI futex, whose word the kernel
	// changes when the thread gets the lock.
	Word uint64
	// Target is the PI futex to which RequeuePI may move the waiter (FUTEX_WAIT_REQUEUE_PI); nil: none.
	Target *K

	key    K
	bitset uint32
	queued bool
	pi     bool // the thread waits for the lock of a PI futex
	// queue and taken are storage for a queue and for a result with this waiter only. Most futexes have one waiter, which
	// then needs no allocation.
	queue, taken [1]*Waiter[K]
}

// Waiting reports whether the waiter is still in a queue.
func (w *Waiter[K]) Waiting() bool { return w.queued }

// ForLock reports whether the waiter waits, or has waited last, for the lock of a PI futex.
func (w *Waiter[K]) ForLock() bool { return w.pi }

// Table holds the queues. The zero value is empty. Each operation searches the list of queues, which is less work than a map for
// the few futexes that have waiters at the same time.
type Table[K comparable] struct {
	queues []queue[K]   // one for each futex with waiters, in no order
	owners map[K]uint32 // for each PI futex with waiters, the thread that owns it
}

// queue holds the waiters of one futex in order of arrival.
type queue[K comparable] struct {
	key     K
	waiters []*Waiter[K]
}

// queue returns the queue of a futex, or nil. It is valid until the next change of the Table.
func (t *Table[K]) queue(key K) *queue[K] {
	for i := range t.queues {
		if q := &t.queues[i]; q.key == key {
			return q
		}
	}
	return nil
}

// waiters returns the waiters of a futex in order of arrival.
func (t *Table[K]) waiters(key K) []*Waiter[K] {
	if q := t.queue(key); q != nil {
		return q.waiters
	}
	return nil
}

// Wait puts a waiter at the end of a queue. bitset is not zero.
func (t *Table[K]) Wait(key K, w *Waiter[K], bitset uint32) {
	w.key, w.bitset, w.queued, w.pi = key, bitset, true, false
	if q := t.queue(key); q != nil {
		q.waiters = append(q.waiters, w)
		return
	}
	w.queue[0] = w
	t.queues = append(t.queues, queue[K]{key, w.queue[:]})
}

// Cancel removes a waiter whose wait ends by timeout or signal. It returns false if the waiter was not waiting any more:
// then it was woken, and the wait succeeds.
func (t *Table[K]) Cancel(w *Waiter[K]) bool {
	if !w.queued {
		return false
	}
	t.take(w.key, func(o *Waiter[K]) bool { return o == w }, 1)
	return true
}

// Wake removes up to n waiters whose bitset shares a bit with bitset, in order of arrival, and returns them.
func (t *Table[K]) Wake(key K, n int, bitset uint32) []*Waiter[K] {
	return t.take(key, func(w *Waiter[K]) bool { return w.bitset&bitset != 0 }, n)
}

// take removes up to n waiters for which the function match returns true.
func (t *Table[K]) take(key K, match func(*Waiter[K]) bool, n int) (taken []*Waiter[K]) {
	q := t.queue(key)
	if q == nil {
		return nil
	}
	q.waiters = slices.DeleteFunc(q.waiters, func(w *Waiter[K]) bool {
		if len(taken) >= n || !match(w) {
			return false
		}
		w.queued = false
		if taken == nil {
			taken = w.taken[:0]
		}
		taken = append(taken, w)
		return true
	})
	if len(q.waiters) == 0 {
		if len(t.owners) > 0 {
			delete(t.owners, key)
		}
		last := len(t.queues) - 1
		*q, t.queues[last] = t.queues[last], queue[K]{}
		t.queues = t.queues[:last]
	}
	return taken
}

// Requeue wakes waiters of the first futex (from), and moves other waiters to the queue of the second futex (to). The
// parameters wake and move are the maximum numbers of both. For FUTEX_CMP_REQUEUE, the caller has compared the word. It
// returns the woken waiters and the number of moved waiters.
func (t *Table[K]) Requeue(from, to K, wake, move int) (woken []*Waiter[K], moved int) {
	woken = t.Wake(from, wake, AnyBit)
	if from == to {
		return woken, min(move, t.Count(from))
	}
	for _, w := range t.Wake(from, move, AnyBit) {
		t.Wait(to, w, w.bitset)
		moved++
	}
	return woken, moved
}

// MoveTo is like Requeue, for a second futex in another table. It returns the moved waiters as well.
func (t *Table[K]) MoveTo(o *Table[K], from, to K, wake, move int) (woken, moved []*Waiter[K]) {
	woken = t.Wake(from, wake, AnyBit)
	moved = t.Wake(from, move, AnyBit)
	for _, w := range moved {
		o.Wait(to, w, w.bitset)
	}
	return woken, moved
}

// Count returns the number of waiters of a futex.
func (t *Table[K]) Count(key K) int { return len(t.waiters(key)) }

// Empty reports whether no thread waits for any futex.
func (t *Table[K]) Empty() bool { return len(t.queues) == 0 }

// Operation is the encoded argument of FUTEX_WAKE_OP: an operation on the second word, and a comparison of its previous
// value.
type Operation uint32

// Apply returns the new value of the word, and whether the comparison of its old value is true. ok is false for an operation
// that does not exist (ENOSYS).
func (o Operation) Apply(old uint32) (value uint32, compares, ok bool) {
	argument := signed12(uint32(o) >> 12)
	if o>>28&8 != 0 { // FUTEX_OP_OPARG_SHIFT: the operand is a bit number
		argument = 1 << (argument & 31)
	}
	switch o >> 28 & 7 {
	case 0:
		value = uint32(argument)
	case 1:
		value = old + uint32(argument)
	case 2:
		value = old | uint32(argument)
	case 3:
		value = old &^ uint32(argument)
	case 4:
		value = old ^ uint32(argument)
	default:
		return 0, false, false
	}
	order := cmp.Compare(int32(old), signed12(uint32(o)))
	kind := o >> 24 & 15
	if kind > 5 {
		return 0, false, false
	}
	// The comparisons in the order of their numbers: equal, unequal, less, less or equal, greater, greater or equal.
	return value, [...]bool{order == 0, order != 0, order < 0, order <= 0, order > 0, order >= 0}[kind], true
}

// signed12 extends the sign of the low twelve bits.
func signed12(v uint32) int32 { return int32(v<<20) >> 20 }
