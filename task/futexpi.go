package task

import (
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/futex"
)

// Futexes with priority inheritance (futex(2)). A program changes the words of its locks by atomic instructions while the kernel
// changes them, so the kernel compares and swaps, too.

// futexWord changes a word by a function of its value, atomically, and returns the new value. change returns an errno to
// leave the word unchanged. The caller holds System.mu.
func (m memory) futexWord(addr uint64, change func(old uint32) (uint32, linux.Errno)) (uint32, linux.Errno) {
	old, errno := m.word(addr)
	for errno == 0 {
		var value, found uint32
		if value, errno = change(old); errno != 0 {
			break
		}
		if found, errno = m.swap(addr, old, value); errno == 0 && found == old {
			return value, 0
		}
		old = found
	}
	return 0, errno
}

// writable makes the page of a word present and writable. The caller does not hold System.mu.
func (m memory) writable(addr uint64) linux.Errno {
	v, errno := m.word(addr)
	if errno == 0 {
		_, errno = m.swap(addr, v, v)
	}
	return errno
}

// threadExists reports whether a thread may own a lock. The caller holds System.mu.
func (s *System) threadExists(id uint32) bool { return s.tasks[family.PID(id)] != nil }

// waiterOf returns the waiter of a thread, or nil. The caller holds System.mu.
func (s *System) waiterOf(id uint32) *futex.Waiter[mem.Location] {
	if t := s.tasks[family.PID(id)]; t != nil {
		return &t.waiter
	}
	return nil
}

// lockErrors are the errors for outcomes of futex.LockWord.
var lockErrors = [...]linux.Errno{futex.Deadlock: linux.EDEADLK, futex.NoOwner: linux.ESRCH}

// lockFor takes the lock in a word for a thread, or marks the word as waited for. It returns the owner if that is another
// thread. more says that others will wait after the thread gets the lock. The caller holds System.mu. Errors: EDEADLK, ESRCH,
// EFAULT; EAGAIN if try is set and the lock is not free.
func (m memory) lockFor(addr uint64, thread uint32, try, more bool) (owner uint32, errno linux.Errno) {
	s := m.t.process.system
	value, errno := m.futexWord(addr, func(old uint32) (uint32, linux.Errno) {
		value, lock := futex.LockWord(old, thread, s.threadExists)
		switch {
		case lock == futex.MustWait && try:
			return old, linux.EAGAIN
		case lock == futex.MustWait && s.futexes.Blocks(old&futex.Owner, thread, s.waiterOf):
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

// futexLock implements FUTEX_LOCK_PI, FUTEX_LOCK_PI2 and FUTEX_TRYLOCK_PI. Errors: EDEADLK, ESRCH, ETIMEDOUT, EAGAIN, EINTR.
func (t *Task) futexLock(key mem.Location, a call.Args, clock int, try bool) (uint64, linux.Errno) {
	most, errno := t.futexTime(a.A4, clock)
	if try {
		most, errno = forever, 0
	}
	m, s, w := memory{t}, t.process.system, &t.waiter
	if errno == 0 {
		errno = m.writable(a.A1)
	}
	if errno != 0 {
		return 0, errno
	}
	s.mu.Lock()
	if s.futexes.Count(key) > 0 && s.futexes.Plain(key) {
		s.mu.Unlock()
		return 0, linux.EINVAL
	}
	owner, errno := m.lockFor(a.A1, uint32(t.id), try, false)
	if errno != 0 || owner == 0 {
		s.mu.Unlock()
		return 0, errno
	}
	t.prepareLock(a.A1)
	s.futexes.WaitLock(key, w, owner)
	s.mu.Unlock()
	return 0, t.awaitLock(most)
}

// prepareLock prepares the task's waiter for a lock at an address. The caller holds System.mu.
func (t *Task) prepareLock(addr uint64) {
	t.waiter.Thread, t.waiter.Priority, t.waiter.Word, t.waiter.Target = uint32(t.id), int(t.traits.Priority), addr, nil
}

// awaitLock waits until the task has a lock.
func (t *Task) awaitLock(most time.Duration) linux.Errno {
	errno := t.await(t.waiter.Woken, most)
	if errno == 0 {
		return 0
	}
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.futexes.Cancel(&t.waiter) { // it got the lock meanwhile
		<-t.waiter.Woken
		return 0
	}
	return errno
}

// futexTime returns the time until a struct timespec of a clock; forever for the address 0. Errors: EFAULT, EINVAL.
func (t *Task) futexTime(addr uint64, clock int) (time.Duration, linux.Errno) {
	if addr == 0 {
		return forever, 0
	}
	until, errno := t.duration(addr)
	if errno != 0 {
		return 0, errno
	}
	now, _ := t.clock(clock)
	return max(until-time.Duration(now), 0), 0
}

// futexUnlock implements FUTEX_UNLOCK_PI: the waiter with the highest priority gets the lock. Errors: EPERM, EFAULT, EINVAL.
func (t *Task) futexUnlock(key mem.Location, a call.Args) (uint64, linux.Errno) {
	m, s := memory{t}, t.process.system
	if errno := m.writable(a.A1); errno != 0 {
		return 0, errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	word, errno := m.word(a.A1)
	switch {
	case errno != 0:
		return 0, errno
	case word&futex.Owner != uint32(t.id):
		return 0, linux.EPERM
	case s.futexes.Count(key) > 0 && s.futexes.Plain(key):
		return 0, linux.EINVAL
	}
	value, next, _ := s.futexes.Unlock(key, word, uint32(t.id))
	_, errno = m.futexWord(a.A1, func(uint32) (uint32, linux.Errno) { return value, 0 })
	if next != nil {
		next.Woken <- struct{}{}
	}
	return 0, errno
}

// futexWaitRequeue implements FUTEX_WAIT_REQUEUE_PI: the thread waits at a first word, is moved to a lock, and returns with that
// lock. Errors: EAGAIN, EINVAL, ETIMEDOUT, EINTR.
func (t *Task) futexWaitRequeue(key mem.Location, a call.Args, private bool) (uint64, linux.Errno) {
	to, ok := t.memory().Locate(a.A5, private)
	clock := linux.CLOCK_MONOTONIC
	if a.A2&linux.FUTEX_CLOCK_REALTIME != 0 {
		clock = linux.CLOCK_REALTIME
	}
	most, errno := t.futexTime(a.A4, clock)
	switch {
	case !ok:
		return 0, linux.EFAULT
	case to == key:
		return 0, linux.EINVAL
	case errno != 0:
		return 0, errno
	}
	m, s, w := memory{t}, t.process.system, &t.waiter
	if _, errno := m.word(a.A1); errno != 0 {
		return 0, errno
	}
	s.mu.Lock()
	if errno := m.expect(a.A1, uint32(a.A3)); errno != 0 {
		s.mu.Unlock()
		return 0, errno
	}
	t.prepareLock(a.A5)
	w.Target = &to
	s.futexes.Wait(key, w, futex.AnyBit)
	s.mu.Unlock()
	errno = t.awaitLock(most)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Target = nil; errno == linux.EINTR && w.ForLock() {
		errno = linux.EAGAIN // the first word has changed since
	}
	return 0, errno
}

// futexRequeueLock implements FUTEX_CMP_REQUEUE_PI: the first waiter gets the lock if it is free, and others wait for it. It
// returns their number. Errors: EAGAIN, EINVAL, EFAULT, EDEADLK, ESRCH.
func (t *Task) futexRequeueLock(key mem.Location, a call.Args, private bool) (uint64, linux.Errno) {
	to, ok := t.memory().Locate(a.A5, private)
	switch {
	case !ok:
		return 0, linux.EFAULT
	case number(a.A3) != 1 || number(a.A4) < 0 || to == key:
		return 0, linux.EINVAL
	}
	m, s := memory{t}, t.process.system
	_, errno := m.word(a.A1)
	if errno == 0 {
		errno = m.writable(a.A5)
	}
	if errno != 0 {
		return 0, errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, errno := m.word(a.A1)
	if errno == 0 && v != uint32(a.A6) {
		errno = linux.EAGAIN
	}
	if errno != 0 {
		return 0, errno
	}
	list, ok := s.futexes.Movable(key, to, 1+number(a.A4))
	if !ok {
		return 0, linux.EINVAL
	}
	for done, w := range list {
		owner, errno := m.lockFor(a.A5, w.Thread, false, done+1 < len(list))
		switch {
		case errno != 0:
			return uint64(done), errnoUnless(done, errno)
		case owner == 0:
			s.futexes.Cancel(w)
			s.futexes.Acquire(w)
			w.Woken <- struct{}{}
		default:
			s.futexes.Move(w, to, owner)
		}
	}
	return uint64(len(list)), 0
}

// errnoUnless returns the errno if nothing was done.
func errnoUnless(done int, errno linux.Errno) linux.Errno {
	if done > 0 {
		return 0
	}
	return errno
}

// leaveLocks passes on the PI futexes that the thread owns. Their words show that the owner has died.
func (t *Task) leaveLocks() {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.futexes.Owned(uint32(t.id)) {
		value, next := s.futexes.DiedPI(key)
		if next == nil {
			continue
		}
		if of := s.tasks[family.PID(next.Thread)]; of != nil {
			memory{of}.futexWord(next.Word, func(uint32) (uint32, linux.Errno) { return value, 0 })
		}
		next.Woken <- struct{}{}
	}
}
