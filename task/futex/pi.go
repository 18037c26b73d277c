package futex

// Lock is the result of an attempt to lock a PI futex.
type Lock uint8

// Values of Lock: what the caller has to do.
const (
	Acquired Lock = iota // the thread has the lock: store the new word
	MustWait             // store the new word, then call WaitLock and block
	Deadlock             // the thread already has the lock (EDEADLK)
	NoOwner              // the owner does not exist (ESRCH)
)

// LockWord returns the new value of a word that a thread wants to lock, and the result. exists reports whether a thread with
// an ID is alive.
func LockWord(word, thread uint32, exists func(uint32) bool) (uint32, Lock) {
	switch owner := word & Owner; {
	case owner == 0: // OwnerDied is kept: the new owner must repair the data that the lock protects
		return word&(Waiters|OwnerDied) | thread, Acquired
	case owner == thread:
		return word, Deadlock
	case !exists(owner):
		return word, NoOwner
	}
	return word | Waiters, MustWait
}

// Unlock passes a PI futex from thread to the next waiter. It returns the new word and the new owner, or nil if no thread
// waits. ok is false if thread is not the owner (EPERM).
func (t *Table[K]) Unlock(key K, word, thread uint32) (value uint32, next *Waiter[K], ok bool) {
	if word&Owner != thread {
		return word, nil, false
	}
	value, next = t.pass(key)
	return value, next, true
}

// pass removes the waiter that gets the lock next, and returns it with the word that makes it the owner.
func (t *Table[K]) pass(key K) (uint32, *Waiter[K]) {
	first := t.Highest(key)
	if first == nil {
		return 0, nil
	}
	t.Cancel(first)
	value := first.Thread & Owner
	if t.Count(key) > 0 {
		value |= Waiters
		t.own(key, first.Thread)
	}
	return value, first
}

// Highest returns the waiter that gets the lock next, or nil. The owner inherits its priority.
func (t *Table[K]) Highest(key K) (first *Waiter[K]) {
	for _, w := range t.waiters(key) {
		if first == nil || w.Priority > first.Priority {
			first = w
		}
	}
	return first
}

// DiedOwner returns how the end of a thread changes the word of a robust futex: the new word, and whether one waiter must be
// woken. changed is false if the thread does not hold the futex. For a PI futex the kernel calls DiedPI instead of waking a
// waiter.
func DiedOwner(word, thread uint32) (value uint32, wake, changed bool) {
	if word&Owner != thread {
		return word, false, false
	}
	return word&Waiters | OwnerDied, word&Waiters != 0, true
}

// DiedPI passes a PI futex of a thread that has ended to the next waiter. The new word has OwnerDied set.
func (t *Table[K]) DiedPI(key K) (value uint32, next *Waiter[K]) {
	value, next = t.pass(key)
	return value | OwnerDied, next
}

// maxRobust is the maximum number of entries that are followed in a robust list, which may be circular (ROBUST_LIST_LIMIT).
const maxRobust = 2048

// Robust is one lock of a list: the address of its word, and whether it is a PI futex.
type Robust struct {
	Word uint64
	PI   bool
	// Pending is set for the lock that the thread was about to acquire or release. This lock may be in no list. Its waiters
	// are also woken if the word is zero.
	Pending bool
}

// WalkRobust calls f for each lock of the robust list of a thread (set_robust_list(2)). At head are three words: the
// first entry, the distance from an entry to its futex word, and a pending entry. Bit 0 of a pointer marks a PI futex.
// The function read returns a word of the thread's memory. The walk ends at an entry that cannot be read.
func WalkRobust(head uint64, read func(addr uint64) (uint64, bool), f func(Robust)) {
	var h [3]uint64
	for i := range h {
		v, ok := read(head + uint64(i)*8)
		if !ok {
			return
		}
		h[i] = v
	}
	entry, offset, pending := h[0], h[1], h[2]
	lock := func(pointer uint64, isPending bool) {
		f(Robust{Word: pointer&^1 + offset, PI: pointer&1 != 0, Pending: isPending})
	}
	for n := 0; entry&^1 != head && n < maxRobust; n++ {
		next, ok := read(entry &^ 1) // read first: after f, another thread may have the lock and free the entry
		if entry&^1 != pending&^1 {
			lock(entry, false)
		}
		if !ok {
			return // as on Linux, the pending lock is then ignored
		}
		entry = next
	}
	if pending&^1 != 0 {
		lock(pending, true)
	}
}
