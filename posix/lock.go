package posix

import (
	"math"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// File locks: flock(2), and byte-range locks of fcntl(2). Two locks conflict if they overlap, belong to
// different owners, and at least one is a write lock. The owner of a lock is either the process
// (F_SETLK) or an open file description (F_OFD_SETLK, flock). A process loses all its locks on a file
// when it closes any descriptor of that file.

// FileLock is struct flock.
type FileLock = linux.Flock

// held is a lock that is held on the bytes from first to last, inclusive.
type held struct {
	owner       any // *own or *treeFile
	first, last int64
	write       bool
}

func (h held) blocks(o held) bool {
	return h.owner != o.owner && (h.write || o.write) && h.first <= o.last && o.first <= h.last
}

// lockTable holds the locks of one kind.
type lockTable struct {
	count atomic.Int32 // all locks; lets release return at once if there are none
	mu    sync.Mutex
	locks map[fs.Node][]held
	gone  chan struct{} // closed when a lock is released; created by the first waiter
}

// blocker returns a lock that conflicts with want.
func (t *lockTable) blocker(n fs.Node, want held) (held, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.locks[n] {
		if h.blocks(want) {
			return h, true
		}
	}
	return held{}, false
}

// try acquires a lock and returns nil, or returns a channel that is closed when a lock is released.
func (t *lockTable) try(n fs.Node, want held) (wait <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.locks[n] {
		if h.blocks(want) {
			if t.gone == nil {
				t.gone = make(chan struct{})
			}
			return t.gone
		}
	}
	t.cut(n, want)
	t.locks[n] = append(t.locks[n], want)
	t.count.Add(1)
	t.wakeWaiters() // a write lock may have become a read lock
	return nil
}

// release unlocks a range for its owner.
func (t *lockTable) release(n fs.Node, what held) {
	if t.count.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut(n, what)
	t.wakeWaiters()
}

// cut removes a range from the locks of its owner, and splits them where necessary. The caller holds
// mu.
func (t *lockTable) cut(n fs.Node, what held) {
	if t.locks == nil {
		t.locks = make(map[fs.Node][]held)
	}
	old := t.locks[n]
	var list []held
	for _, h := range old {
		if h.owner != what.owner || h.first > what.last || what.first > h.last {
			list = append(list, h)
			continue
		}
		if h.first < what.first {
			list = append(list, held{h.owner, h.first, what.first - 1, h.write})
		}
		if h.last > what.last {
			list = append(list, held{h.owner, what.last + 1, h.last, h.write})
		}
	}
	t.count.Add(int32(len(list) - len(old)))
	if t.locks[n] = list; list == nil {
		delete(t.locks, n)
	}
}

// wakeWaiters wakes the waiters. The caller holds mu.
func (t *lockTable) wakeWaiters() {
	if t.gone != nil {
		close(t.gone)
		t.gone = nil
	}
}

// Flock implements flock(2). Without LOCK_NB it blocks until the lock is free. Errors: EBADF, EAGAIN,
// EINVAL.
func (p *Process) Flock(fd, how int) Errno {
	f, errno := p.real(fd, linux.EBADF)
	if errno != 0 {
		return errno
	}
	node := f.Place().Node
	want := held{owner: f, last: math.MaxInt64, write: how&^linux.LOCK_NB == linux.LOCK_EX}
	switch how &^ linux.LOCK_NB {
	case linux.LOCK_UN:
		p.flocks.release(node, want)
		return 0
	case linux.LOCK_SH, linux.LOCK_EX:
		return p.flocks.take(node, want, how&linux.LOCK_NB == 0, p)
	}
	return linux.EINVAL
}

// take acquires a lock. If the lock is not available, it waits or returns EAGAIN.
func (t *lockTable) take(n fs.Node, want held, wait bool, p *Process) Errno {
	for {
		gone := t.try(n, want)
		switch {
		case gone == nil:
			return 0
		case !wait:
			return linux.EAGAIN
		}
		if done, errno := p.awaitEvent(gone, nil); done {
			return errno
		}
	}
}

// Lock implements the lock commands of fcntl(2). It does not detect deadlocks. Errors: EBADF, EAGAIN
// if a conflicting lock is held and cmd does not wait, EINVAL, EOVERFLOW.
func (p *Process) Lock(fd, cmd int, l *FileLock) Errno {
	f, errno := p.real(fd, linux.EBADF)
	if errno != 0 {
		return errno
	}
	want := held{owner: p.own, write: l.Type == linux.F_WRLCK}
	if cmd >= linux.F_OFD_GETLK {
		if want.owner = f; l.PID != 0 {
			return linux.EINVAL
		}
	}
	if want.first, want.last, errno = f.lockRange(l); errno != 0 {
		return errno
	}
	node := f.Place().Node
	switch cmd {
	case linux.F_GETLK, linux.F_OFD_GETLK:
		p.whoLocks(node, want, l)
		return 0
	}
	switch l.Type {
	case linux.F_UNLCK:
		p.ranges.release(node, want)
		return 0
	case linux.F_RDLCK:
		if !f.Flags().MayRead() {
			return linux.EBADF
		}
	case linux.F_WRLCK:
		if !f.Flags().MayWrite() {
			return linux.EBADF
		}
	default:
		return linux.EINVAL
	}
	return p.ranges.take(node, want, cmd == linux.F_SETLKW || cmd == linux.F_OFD_SETLKW, p)
}

// whoLocks implements F_GETLK: it stores the first conflicting lock in l.
func (p *Process) whoLocks(n fs.Node, want held, l *FileLock) {
	h, blocked := p.ranges.blocker(n, want)
	if !blocked {
		l.Type = linux.F_UNLCK
		return
	}
	*l = FileLock{Type: linux.F_RDLCK, Start: h.first, Len: h.last - h.first + 1, PID: -1}
	if h.write {
		l.Type = linux.F_WRLCK
	}
	if h.last == math.MaxInt64 {
		l.Len = 0
	}
	if h.owner == any(p.own) {
		l.PID = p.credentials.PID
	}
}

// lockRange returns the first and the last byte of l. Errors: EINVAL, EOVERFLOW.
func (f *treeFile) lockRange(l *FileLock) (first, last int64, errno Errno) {
	first = l.Start
	switch l.Whence {
	case fs.SeekSet:
	case fs.SeekCur:
		at, err := f.Seek(0, fs.SeekCur)
		if err != nil {
			return 0, 0, file.ToErrno(err)
		}
		first += at
	case fs.SeekEnd:
		first += f.Attr().Size
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
