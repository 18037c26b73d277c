package futexcall

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/futex"
)

// Futexes with priority inheritance: locks whose words hold the ID of the owner.

// exists reports whether a thread may own a lock. The caller holds locks.mu.
func (o *Objects) exists(id uint32) bool {
	c := o.thread(id)
	return c != nil && !c.Futexes().left
}

// lockErrors are the errors for outcomes of futex.LockWord.
var lockErrors = [...]linux.Errno{futex.Deadlock: linux.EDEADLK, futex.NoOwner: linux.ESRCH}

// lockFor acquires the PI lock at an address for a thread, or sets the bit in its word that shows waiters. It returns
// the owner if another thread has the lock. more is set if other threads still wait when this thread gets the lock.
// The caller holds locks.mu. Errors: EDEADLK, ESRCH, EFAULT; EAGAIN if try is set and the lock is not free.
func (t task) lockFor(addr uint64, thread uint32, try, more bool) (owner uint32, errno linux.Errno) {
	value, errno := update(t.Caller, addr, func(old uint32) (uint32, linux.Errno) {
		value, lock := futex.LockWord(old, thread, t.exists)
		switch {
		case lock == futex.MustWait && try:
			return old, linux.EAGAIN
		case lock == futex.MustWait && t.locks.table.Blocks(old&futex.Owner, thread, t.locks.waiterOf):
			return old, linux.EDEADLK
		case lock == futex.Acquired && more:
			value |= futex.Waiters
		}
		return value, lockErrors[min(int(lock), len(lockErrors)-1)]
	})
	if owner = value & futex.Owner; owner == thread {
		owner = 0
	}
	return owner, errno
}

// lock implements FUTEX_LOCK_PI, FUTEX_LOCK_PI2 and FUTEX_TRYLOCK_PI. Errors: EDEADLK, ESRCH, EINVAL, EFAULT, ETIMEDOUT, EAGAIN,
// EINTR.
func (t task) lock(key mem.Location, a call.Args, clock int, try bool) (uint64, linux.Errno) {
	most, errno := t.until(a.A4, clock)
	if try {
		most, errno = forever, 0
	}
	if errno == 0 {
		errno = writable(t.Caller, a.A1)
	}
	if errno != 0 {
		return 0, errno
	}
	if t.hasPlain(key) {
		return 0, linux.EINVAL
	}
	w := t.prepareLock(a.A1)
	if owner, errno := t.acquire(key, w, try); errno != 0 || owner == 0 {
		return 0, errno
	}
	return 0, t.await(w, most)
}

// hasPlain reports whether a futex has waiters, and all of them wait by FUTEX_WAIT. Such a futex is no PI futex.
func (t task) hasPlain(key mem.Location) bool {
	b := t.of(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.table.Count(key) > 0 && b.table.Plain(key)
}

// acquire takes the lock at the address w.Word for the thread, or adds w to its queue and returns the owner. Errors: those of
// lockFor.
func (t task) acquire(key mem.Location, w *waiter, try bool) (owner uint32, errno linux.Errno) {
	l := &t.locks
	l.mu.Lock()
	defer l.unlock()
	owner, errno = t.lockFor(w.Word, w.Thread, try, false)
	if errno == 0 && owner != 0 {
		l.enqueue(key, w, owner)
	}
	return owner, errno
}

// prepareLock returns the thread's waiter, prepared to wait for the PI lock at an address. The waiter is in no queue.
func (t task) prepareLock(addr uint64) *waiter {
	w := &t.Futexes().waiter
	w.Thread, w.Priority, w.Word, w.Target = uint32(t.ID()), t.Priority(), addr, nil
	return w
}

// unlock implements FUTEX_UNLOCK_PI: the waiter with the highest priority gets the lock. Errors: EPERM, EFAULT, EINVAL.
func (t task) unlock(key mem.Location, a call.Args) (uint64, linux.Errno) {
	if errno := writable(t.Caller, a.A1); errno != 0 {
		return 0, errno
	}
	own, plain := uint32(t.ID()), t.hasPlain(key)
	l := &t.locks
	l.mu.Lock()
	defer l.unlock()
	old, errno := t.Load(a.A1)
	switch {
	case errno != 0:
		return 0, errno
	case old&futex.Owner != own:
		return 0, linux.EPERM
	case plain:
		return 0, linux.EINVAL
	}
	value, next, _ := l.table.Unlock(key, old, own)
	_, errno = update(t.Caller, a.A1, func(uint32) (uint32, linux.Errno) { return value, 0 })
	if next != nil {
		l.pass(next)
	}
	return 0, errno
}

// waitRequeue implements FUTEX_WAIT_REQUEUE_PI: the thread waits at a first word, is moved to a lock, and returns with that
// lock. Errors: EAGAIN, EINVAL, EFAULT, ETIMEDOUT, EINTR.
func (t task) waitRequeue(key mem.Location, a call.Args, private bool) (uint64, linux.Errno) {
	to, ok := t.Map().Locate(a.A5, private)
	most, errno := t.until(a.A4, clockOf(a))
	switch {
	case !ok:
		return 0, linux.EFAULT
	case to == key:
		return 0, linux.EINVAL
	case errno != 0:
		return 0, errno
	}
	if _, errno := t.Load(a.A1); errno != 0 {
		return 0, errno
	}
	w := t.prepareLock(a.A5)
	w.Target = &to
	if errno := t.enqueue(key, w, a.A1, uint32(a.A3), futex.AnyBit); errno != 0 {
		w.Target = nil
		return 0, errno
	}
	errno = t.await(w, most)
	if w.Target = nil; errno == linux.EINTR && w.ForLock() {
		errno = linux.EAGAIN // the first of the two words has changed since it was read
	}
	return 0, errno
}

// requeueLock implements FUTEX_CMP_REQUEUE_PI: the first waiter gets the lock if it is free, and the other waiters
// are moved to the queue of the lock. It returns the number of all these waiters. Errors: EAGAIN, EINVAL, EFAULT,
// EDEADLK, ESRCH.
func (t task) requeueLock(key mem.Location, a call.Args, private bool) (uint64, linux.Errno) {
	to, ok := t.Map().Locate(a.A5, private)
	switch {
	case !ok:
		return 0, linux.EFAULT
	case number(a.A3) != 1 || number(a.A4) < 0 || to == key:
		return 0, linux.EINVAL
	}
	_, errno := t.Load(a.A1)
	if errno == 0 {
		errno = writable(t.Caller, a.A5)
	}
	if errno != 0 {
		return 0, errno
	}
	b, l := t.of(key), &t.locks
	b.mu.Lock()
	defer b.mu.Unlock()
	l.mu.Lock()
	defer l.unlock()
	if errno := expect(t.Caller, a.A1, uint32(a.A6)); errno != 0 {
		return 0, errno
	}
	list, ok := b.table.Movable(key, to, 1+number(a.A4))
	if !ok {
		return 0, linux.EINVAL
	}
	for done, w := range list {
		owner, errno := t.lockFor(a.A5, w.Thread, false, done+1 < len(list))
		switch {
		case errno != 0 && done == 0:
			return 0, errno
		case errno != 0:
			return uint64(done), 0
		case owner == 0:
			b.table.Cancel(w)
			l.table.Acquire(w)
			rouse([]*waiter{w})
		default:
			b.table.Cancel(w)
			l.enqueue(to, w, owner)
		}
	}
	return uint64(len(list)), 0
}
