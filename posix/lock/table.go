// Package lock implements file locks: flock(2), and byte-range locks of fcntl(2). Two locks conflict if they overlap, belong to
// different owners, and at least one is a write lock.
package lock

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Lock is a lock on the bytes from First to Last, inclusive.
type Lock struct {
	// Owner identifies the owner: a process (F_SETLK) or an open file description (F_OFD_SETLK, flock).
	Owner       any
	File        File  // the open file by which the lock was set
	PID         int32 // process ID that F_GETLK reports; NoPID for F_OFD_SETLK
	First, Last int64
	Write       bool
	serial      uint64    // see newest
	device      fs.Device // device and inode number of the file, for /proc/locks
	inode       uint64
}

// NoPID is the process ID of a lock that belongs to an open file description (F_OFD_SETLK).
const NoPID = -1

// File is an open file in the file tree.
type File interface{ Place() fs.Place }

// Whole returns a lock on all bytes of a file.
func Whole(owner any, write bool) Lock { return Lock{Owner: owner, Last: math.MaxInt64, Write: write} }

func (l Lock) blocks(o Lock) bool {
	return l.Owner != o.Owner && (l.Write || o.Write) && l.overlaps(o)
}

func (l Lock) overlaps(o Lock) bool { return l.First <= o.Last && o.First <= l.Last }

// Table holds all locks of one kind: flock(2) or fcntl(2).
type Table struct {
	count atomic.Int32 // number of locks; Release returns at once if it is 0
	mu    sync.Mutex
	locks map[fs.Node][]Lock
	queue map[fs.Node][]*Lock // locks that threads wait for, the oldest request first
	gone  chan struct{}       // closed when a lock is released, to wake the waiters; created by the first waiter
	// waits maps a process that waits for a lock to the owner of that lock. If several threads of a process wait, only the
	// last one is recorded, so a deadlock among them may not be detected.
	waits map[any]any
}

// Blocker returns a lock that conflicts with the lock want, if there is one.
func (t *Table) Blocker(n fs.Node, want Lock) (Lock, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.locks[n] {
		if h.blocks(want) {
			return h, true
		}
	}
	return Lock{}, false
}

// owned returns a lock of the owner of want that overlaps want, if there is one.
func (t *Table) owned(n fs.Node, want Lock) (Lock, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.locks[n] {
		if h.Owner == want.Owner && h.overlaps(want) {
			return h, true
		}
	}
	return Lock{}, false
}

// try acquires a lock and returns nil. If the lock is not available, it returns a channel that is closed when a lock is
// released. With convert, a lock of the other type is released first; no other owner can take its place before the attempt.
// Errors: EDEADLK if detect is set and the wait would be a deadlock.
func (t *Table) try(n fs.Node, want Lock, detect, convert bool) (wait <-chan struct{}, errno linux.Errno) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if convert && slices.ContainsFunc(t.locks[n], func(h Lock) bool { return h.Owner == want.Owner && h.Write != want.Write }) {
		t.cut(n, want)
		t.wakeWaiters()
	}
	delete(t.waits, want.Owner)
	for _, h := range t.locks[n] {
		if h.blocks(want) {
			if t.gone == nil {
				t.gone = make(chan struct{})
			}
			if detect {
				errno = t.waitsFor(want.Owner, h.Owner)
			}
			return t.gone, errno
		}
	}
	t.add(n, want)
	t.wakeWaiters() // the request may have replaced a write lock by a read lock, for which others wait
	return nil, 0
}

// add adds a lock in place of what its owner has locked in this range. Like Linux it merges the lock with locks of the same
// owner and type that touch it, and keeps the locks of an owner together, in the order of their bytes. The caller holds mu.
func (t *Table) add(n fs.Node, want Lock) {
	for _, h := range t.locks[n] {
		if h.Owner == want.Owner && h.Write == want.Write && h.First-1 <= want.Last && want.First-1 <= h.Last {
			want.First, want.Last = min(want.First, h.First), max(want.Last, h.Last)
			want.File, want.serial = h.File, h.serial
		}
	}
	want.number()
	t.cut(n, want)
	list := t.locks[n]
	at := len(list)
	for i, h := range list {
		if h.Owner != want.Owner {
			continue
		}
		if at = i; h.First > want.First {
			break
		}
		at++
	}
	t.locks[n] = slices.Insert(list, at, want)
	t.count.Add(1)
}

// waitsFor records that one owner waits for another. The caller holds mu. Errors: EDEADLK
// if the owner other itself waits for the first owner, directly or through a chain of
// owners. Like Linux, it follows only a limited number of owners.
func (t *Table) waitsFor(owner, other any) linux.Errno {
	const most = 10
	next, ok := other, true
	for i := 0; ok && i <= most; i++ {
		if next == owner {
			return linux.EDEADLK
		}
		next, ok = t.waits[next]
	}
	if t.waits == nil {
		t.waits = make(map[any]any)
	}
	t.waits[owner] = other
	return 0
}

// stopWaiting records that an owner no longer waits.
func (t *Table) stopWaiting(owner any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waits, owner)
}

// Len returns the number of locks.
func (t *Table) Len() int { return int(t.count.Load()) }

// Release unlocks a range for its owner.
func (t *Table) Release(n fs.Node, what Lock) {
	if t.Len() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut(n, what)
	t.wakeWaiters()
}

// close releases the locks that were set by a file that is being closed.
func (t *Table) close(n fs.Node, f File) {
	if t.Len() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.locks[n])
	left := slices.DeleteFunc(t.locks[n], func(h Lock) bool { return h.File == f })
	if len(left) == before {
		return
	}
	t.count.Add(int32(len(left) - before))
	if t.locks[n] = left; len(left) == 0 {
		delete(t.locks, n)
	}
	t.wakeWaiters()
}

// cut removes a range of bytes from the locks of an owner. A lock around the range is split in two. The caller holds mu.
func (t *Table) cut(n fs.Node, what Lock) {
	if t.locks == nil {
		t.locks = make(map[fs.Node][]Lock)
	}
	old := t.locks[n]
	var list []Lock
	for _, h := range old {
		if h.Owner != what.Owner || h.First > what.Last || what.First > h.Last {
			list = append(list, h)
			continue
		}
		if h.First < what.First {
			left := h
			if left.Last = what.First - 1; h.Last > what.Last {
				left.serial = 0
				left.number()
			}
			list = append(list, left)
		}
		if h.Last > what.Last {
			h.First = what.Last + 1
			list = append(list, h)
		}
	}
	t.count.Add(int32(len(list) - len(old)))
	if t.locks[n] = list; list == nil {
		delete(t.locks, n)
	}
}

// wakeWaiters wakes the waiters. The caller holds mu.
func (t *Table) wakeWaiters() {
	if t.gone != nil {
		close(t.gone)
		t.gone = nil
	}
}

// Take acquires a lock. If the lock is not available, it waits if wait is set, and otherwise returns EAGAIN. With detect, a
// wait that would be a deadlock fails. Errors: EAGAIN, EINTR, EDEADLK.
func (t *Table) Take(n fs.Node, want Lock, wait, detect bool, task file.Task) linux.Errno {
	return t.take(n, want, wait, detect, false, task)
}

// Convert is like Take for a lock on the whole file. As with flock(2) on Linux, an owner that has a lock of the other type loses that
// lock first, even if it does not get the new one.
func (t *Table) Convert(n fs.Node, want Lock, wait bool, task file.Task) linux.Errno {
	return t.take(n, want, wait, false, true, task)
}

// take implements Take and Convert.
func (t *Table) take(n fs.Node, want Lock, wait, detect, convert bool, task file.Task) linux.Errno {
	want.locate()
	gone, errno := t.try(n, want, wait && detect, convert)
	switch {
	case gone == nil:
		return 0
	case !wait:
		return linux.EAGAIN
	case errno != 0:
		return errno
	}
	queued := t.enqueue(n, want)
	defer t.leave(n, queued)
	for {
		if task.Wait(gone, nil) == file.Interrupted {
			t.stopWaiting(want.Owner)
			return linux.EINTR
		}
		if gone, errno = t.try(n, want, detect, convert); gone == nil || errno != 0 {
			return errno
		}
	}
}

// enqueue adds a lock to the queue of its file.
func (t *Table) enqueue(n fs.Node, want Lock) *Lock {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil {
		t.queue = make(map[fs.Node][]*Lock)
	}
	t.queue[n] = append(t.queue[n], &want)
	return &want
}

// leave removes a lock from the queue of its file.
func (t *Table) leave(n fs.Node, want *Lock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue[n] = slices.DeleteFunc(t.queue[n], func(w *Lock) bool { return w == want })
	if len(t.queue[n]) == 0 {
		delete(t.queue, n)
	}
}

// Describe stores in l, the result of F_GETLK, the first lock that conflicts with the lock want. With own, it is the first lock of
// want's owner that overlaps want (F_OFD_GETLK with F_UNLCK).
func (t *Table) Describe(n fs.Node, want Lock, own bool, l *linux.Flock) {
	find := t.Blocker
	if own {
		find = t.owned
	}
	h, found := find(n, want)
	if !found {
		l.Type = linux.F_UNLCK
		return
	}
	*l = linux.Flock{Type: linux.F_RDLCK, Start: h.First, Len: h.Last - h.First + 1, PID: h.PID}
	if h.Write {
		l.Type = linux.F_WRLCK
	}
	if h.Last == math.MaxInt64 {
		l.Len = 0
	}
}

// Range returns the first and the last byte of l. Its start may be relative to the offset of an open file, or to the end of the file.
// Errors: EINVAL, EOVERFLOW, those of offset.
func Range(l *linux.Flock, offset func() (int64, error), attributes func() fs.Attr) (first, last int64, errno linux.Errno) {
	first = l.Start
	switch l.Whence {
	case fs.SeekSet:
	case fs.SeekCur:
		at, err := offset()
		if err != nil {
			return 0, 0, file.ToErrno(err)
		}
		first += at
	case fs.SeekEnd:
		first += attributes().Size
	default:
		return 0, 0, linux.EINVAL
	}
	switch {
	case l.Len == 0:
		last = math.MaxInt64
	case l.Len > 0:
		last = first + l.Len - 1
	default:
		first, last = first+l.Len, first-1
	}
	switch {
	case first < 0:
		return 0, 0, linux.EINVAL
	case last < first:
		return 0, 0, linux.EOVERFLOW
	}
	return first, last, 0
}
