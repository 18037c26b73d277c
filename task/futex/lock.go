package futex

import "slices"

// The queues of PI futexes, and waiters that move to one (FUTEX_CMP_REQUEUE_PI).

// WaitLock adds a waiter for the lock of a PI futex, which another thread (the parameter owner) has.
func (t *Table[K]) WaitLock(key K, w *Waiter[K], owner uint32) {
	t.Wait(key, w, AnyBit)
	w.pi = true
	t.own(key, owner)
}

// own records which thread owns a PI futex with waiters.
func (t *Table[K]) own(key K, owner uint32) {
	if t.owners == nil {
		t.owners = map[K]uint32{}
	}
	t.owners[key] = owner
}

// Plain reports whether all waiters of a futex wait by FUTEX_WAIT. Other waiters cannot be woken by FUTEX_WAKE, nor moved by
// FUTEX_REQUEUE (EINVAL).
func (t *Table[K]) Plain(key K) bool {
	return !slices.ContainsFunc(t.waiters(key), func(w *Waiter[K]) bool { return w.pi || w.Target != nil })
}

// Blocks reports whether a thread that waits for a PI futex would cause a deadlock: the owner is the thread itself, or waits
// for it directly or through other owners. waiter returns the waiter of a thread, or nil.
func (t *Table[K]) Blocks(owner, thread uint32, waiter func(uint32) *Waiter[K]) bool {
	const most = 1024 // the maximum length of a chain, as max_lock_depth of Linux
	for range most {
		if owner == thread {
			return true
		}
		w := waiter(owner)
		if w == nil || !w.queued || !w.pi {
			return false
		}
		owner = t.owners[w.key]
	}
	return true
}

// Owned returns the PI futexes with waiters that a thread owns.
func (t *Table[K]) Owned(thread uint32) (keys []K) {
	for k, owner := range t.owners {
		if owner == thread {
			keys = append(keys, k)
		}
	}
	return keys
}

// Movable returns up to n waiters of a futex, in order of arrival. ok is false if one of them has not requested to be
// moved to the second futex (to), which is a PI futex (EINVAL).
func (t *Table[K]) Movable(from, to K, n int) (list []*Waiter[K], ok bool) {
	q := t.waiters(from)
	list = slices.Clone(q[:min(n, len(q))])
	for _, w := range list {
		if w.Target == nil || *w.Target != to {
			return nil, false
		}
	}
	return list, true
}

// Acquire records that a waiter was removed from its queue because it got the lock.
func (t *Table[K]) Acquire(w *Waiter[K]) { w.pi = true }
