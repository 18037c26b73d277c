package posix

import (
	"math"
	"sync"
	"sync/atomic"
	"syscall"

	"loam/fs"
)

// Locks on files: flock(2), and those of fcntl(2) on ranges of bytes. Two locks
// are in each other's way when they overlap, belong to different owners, and at
// least one is for writing. Owners are the process (F_SETLK), all of whose locks
// go with the first descriptor of the file that it closes, and the open file
// description (F_OFD_SETLK, flock).

// FileLock is struct flock, with a range that counts from the begin of the file.
type FileLock struct {
	Type       int16 // F_RDLCK, F_WRLCK, F_UNLCK
	Whence     int16
	Start, Len int64 // Len 0: to the end, however far it moves
	PID        int32
}

// Commands of fcntl(2) that package syscall lacks.
const (
	fOFDGetLk  = 36
	fOFDSetLk  = 37
	fOFDSetLkW = 38
)

// Operations of flock(2).
const (
	lockShared    = 1
	lockExclusive = 2
	lockNonblock  = 4
	lockRelease   = 8
)

// held is a lock that somebody has: bytes from first to last.
type held struct {
	owner       any // *Process or *treeFile
	first, last int64
	write       bool
}

func (h held) blocks(o held) bool {
	return h.owner != o.owner && (h.write || o.write) && h.first <= o.last && o.first <= h.last
}

// lockTable has the locks of one kind.
type lockTable struct {
	count atomic.Int32 // of all locks, so that closing a file looks only when there are some
	mu    sync.Mutex
	locks map[fs.Node][]held
	gone  chan struct{} // closed when a lock goes; made by those who wait
}

// blocker finds a lock that is in the way of want.
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

// try takes a lock, or returns what to wait for.
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
	t.tell() // what was for writing may be for reading now
	return nil
}

// release gives a range of an owner back.
func (t *lockTable) release(n fs.Node, what held) {
	if t.count.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut(n, what)
	t.tell()
}

// cut takes a range out of what its owner holds. The caller holds mu.
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

// tell wakes those who wait. The caller holds mu.
func (t *lockTable) tell() {
	if t.gone != nil {
		close(t.gone)
		t.gone = nil
	}
}

// Flock is flock(2).
func (p *Process) Flock(fd, how int) Errno {
	f, errno := p.real(fd, syscall.EBADF)
	if errno != 0 {
		return errno
	}
	node := f.Place().Node
	want := held{owner: f, last: math.MaxInt64, write: how&^lockNonblock == lockExclusive}
	switch how &^ lockNonblock {
	case lockRelease:
		p.flocks.release(node, want)
		return 0
	case lockShared, lockExclusive:
		return p.flocks.take(node, want, how&lockNonblock == 0)
	}
	return syscall.EINVAL
}

// take takes a lock, if it may by waiting.
func (t *lockTable) take(n fs.Node, want held, wait bool) Errno {
	for {
		gone := t.try(n, want)
		switch {
		case gone == nil:
			return 0
		case !wait:
			return syscall.EAGAIN
		}
		<-gone
	}
}

// Lock is fcntl(2) with one of the commands about locks. Deadlocks are not
// looked for.
func (p *Process) Lock(fd, cmd int, l *FileLock) Errno {
	f, errno := p.real(fd, syscall.EBADF)
	if errno != 0 {
		return errno
	}
	want := held{owner: p, write: l.Type == syscall.F_WRLCK}
	if cmd >= fOFDGetLk {
		if want.owner = f; l.PID != 0 {
			return syscall.EINVAL
		}
	}
	if want.first, want.last, errno = f.lockRange(l); errno != 0 {
		return errno
	}
	node := f.Place().Node
	switch cmd {
	case syscall.F_GETLK, fOFDGetLk:
		p.whoLocks(node, want, l)
		return 0
	}
	switch l.Type {
	case syscall.F_UNLCK:
		p.ranges.release(node, want)
		return 0
	case syscall.F_RDLCK:
		if !f.Flags().MayRead() {
			return syscall.EBADF
		}
	case syscall.F_WRLCK:
		if !f.Flags().MayWrite() {
			return syscall.EBADF
		}
	default:
		return syscall.EINVAL
	}
	return p.ranges.take(node, want, cmd == syscall.F_SETLKW || cmd == fOFDSetLkW)
}

// whoLocks answers F_GETLK.
func (p *Process) whoLocks(n fs.Node, want held, l *FileLock) {
	h, blocked := p.ranges.blocker(n, want)
	if !blocked {
		l.Type = syscall.F_UNLCK
		return
	}
	*l = FileLock{Type: syscall.F_RDLCK, Start: h.first, Len: h.last - h.first + 1, PID: -1}
	if h.write {
		l.Type = syscall.F_WRLCK
	}
	if h.last == math.MaxInt64 {
		l.Len = 0
	}
	if h.owner == any(p) {
		l.PID = p.options.Credentials.PID
	}
}

// lockRange is the bytes that l is about. Errors: EINVAL, EOVERFLOW.
func (f *treeFile) lockRange(l *FileLock) (first, last int64, errno Errno) {
	first = l.Start
	switch l.Whence {
	case fs.SeekSet:
	case fs.SeekCur:
		at, err := f.Seek(0, fs.SeekCur)
		if err != nil {
			return 0, 0, toErrno(err)
		}
		first += at
	case fs.SeekEnd:
		first += f.Attr().Size
	default:
		return 0, 0, syscall.EINVAL
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
		return 0, 0, syscall.EINVAL
	case last < first:
		return 0, 0, syscall.EOVERFLOW
	}
	return first, last, 0
}
