package futex

// Lock is the outcome of an attempt to lock a PI futex.
type Lock uint8

// Outcomes.
const (
	Acquired Lock = iota // the word was changed
	MustWait             // call Wait and block, after storing the word
	Deadlock             // EDEADLK: the thread has it already
	NoOwner              // ESRCH: the owner does not exist
)

// LockWord returns the new value of a word that thread wants to lock, and the outcome. exists reports
// whether a thread with an ID is alive.
func LockWord(word, thread uint32, exists func(uint32) bool) (uint32, Lock) {
	switch owner := word & Owner; {
	case owner == 0: // also of an owner that died: the new one has to repair what the lock protects
		return word&(Waiters|OwnerDied) | thread, Acquired
	case owner == thread:
		return word, Deadlock
	case !exists(owner):
		return word, NoOwner
	}
	return word | Waiters, MustWait
}

// Unlock hands a PI futex over. It returns the new word and the waiter that owns it now, or nil if no thread waits. ok is
// false if thread is not the owner (EPERM).
func (t *Table[K]) Unlock(key K, word, thread uint32) (value uint32, next *Waiter[K], ok bool) {
	if word&Owner != thread {
		return word, nil, false
	}
	value, next = t.pass(key)
	return value, next, true
}

// pass removes the first waiter and returns the word that makes it the owner.
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
	for _, w := range t.queues[key] {
		if first == nil || w.Priority > first.Priority {
			first = w
		}
	}
	return first
}

// DiedOwner returns what the end of a thread makes of the word of a robust futex that it may hold: the
// new word, and whether one waiter is to be woken. changed is false if the thread does not hold it. For a PI futex the
// kernel hands over by DiedPI instead of waking.
func DiedOwner(word, thread uint32) (value uint32, wake, changed bool) {
	if word&Owner != thread {
		return word, false, false
	}
	return word&Waiters | OwnerDied, word&Waiters != 0, true
}

// DiedPI hands a PI futex of a dead owner to the next waiter. The word then has OwnerDied.
func (t *Table[K]) DiedPI(key K) (value uint32, next *Waiter[K]) {
	value, next = t.pass(key)
	return value | OwnerDied, next
}

// maxRobust bounds the number of entries of a robust list, which may be circular (ROBUST_LIST_LIMIT).
const maxRobust = 2048

// Robust is one lock of a list: the address of its word, and whether it is a PI futex.
type Robust struct {
	Word uint64
	PI   bool
	// Pending is the lock that the thread was about to take or to release: it may be in no list, and
	// its waiters are woken also if the word is zero.
	Pending bool
}

// WalkRobust calls f for each lock of the list whose head is at an address (set_robust_list(2)): three
// words, the first entry, the distance from an entry to its futex word, and a pending entry. Bit 0 of a pointer
// marks PI. read returns a word of the thread's memory. A list that cannot be read ends there.
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
		next, ok := read(entry &^ 1) // before the lock is given away, and its memory with it
		if entry&^1 != pending&^1 {
			lock(entry, false)
		}
		if !ok {
			return // Linux, too, then ignores the pending lock
		}
		entry = next
	}
	if pending&^1 != 0 {
		lock(pending, true)
	}
}
