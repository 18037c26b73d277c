package lock

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
)

// The text of /proc/locks, and of locks in /proc/PID/fdinfo (proc(5); Linux's fs/locks.c, lock_get_status).

// newest is the serial number of the newest lock or lease. On Linux, /proc/locks lists new locks of a CPU first.
var newest atomic.Uint64

// number gives a lock a serial number, if it has none.
func (l *Lock) number() {
	if l.serial == 0 {
		l.serial = newest.Add(1)
	}
}

// entry is a lock in the list, with the requests that wait for its end. The mode of a lease that must end is its future mode.
type entry struct {
	Lock
	kind, mode string
	waiters    []*entry
}

// Kinds of locks, with the columns that follow.
const (
	flockKind    = "FLOCK  ADVISORY  "
	posixKind    = "POSIX  ADVISORY  "
	ofdKind      = "OFDLCK ADVISORY  "
	leaseKind    = "LEASE  ACTIVE    "
	breakingKind = "LEASE  BREAKING  "
	breakerKind  = "LEASE  BREAKER   "
)

// modes are the modes of locks and leases by their number.
var modes = map[int]string{linux.F_RDLCK: "READ", linux.F_WRLCK: "WRITE", linux.F_UNLCK: "UNLCK"}

// entryOf returns the entry of a lock in a table of flock(2) or of fcntl(2).
func entryOf(l Lock, whole bool) *entry {
	e := &entry{Lock: l, kind: posixKind, mode: modes[linux.F_RDLCK]}
	switch {
	case whole:
		e.kind = flockKind
	case l.PID == NoPID:
		e.kind = ofdKind
	}
	if l.Write {
		e.mode = modes[linux.F_WRLCK]
	}
	return e
}

// enqueue adds a request to the first element that blocks it, or to a request that waits for that element and also blocks it. It reports
// whether an element blocks the request.
func enqueue(list []*entry, w *entry) bool {
	for _, h := range list {
		if h.blocks(w.Lock) {
			if !enqueue(h.waiters, w) {
				h.waiters = append(h.waiters, w)
			}
			return true
		}
	}
	return false
}

// entries returns the locks of a table; whole says that the table is that of flock(2).
func (t *Table) entries(whole bool) (all []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n, locks := range t.locks {
		var list []*entry
		for _, l := range locks {
			list = append(list, entryOf(l, whole))
		}
		for _, w := range t.queue[n] {
			enqueue(list, entryOf(*w, whole))
		}
		all = append(all, list...)
	}
	return all
}

// entries returns the leases.
func (l *Leases) entries() (all []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, leases := range l.held {
		var list []*entry
		for _, h := range leases {
			e := &entry{Lock: h.Lock, kind: leaseKind, mode: modes[h.kind]}
			if e.Write = h.kind == linux.F_WRLCK; !h.until.IsZero() {
				e.kind, e.mode = breakingKind, modes[h.wanted]
			}
			list = append(list, e)
		}
		for _, c := range l.waiting {
			if c.node == n && c.pid != 0 {
				b := entryOf(Whole(c, c.write), true)
				b.kind, b.PID = breakerKind, c.pid
				enqueue(list, b)
			}
		}
		all = append(all, list...)
	}
	return all
}

// Files holds all locks and leases of files.
type Files struct {
	Flocks Table // locks of flock(2)
	Ranges Table // locks of fcntl(2)
	Leases Leases
}

// Release ends the locks and the lease of a file of a tree that is being closed.
func (l *Files) Release(t *fs.Tree, f File) {
	n := f.Place().Node
	l.Ranges.Release(n, Whole(f, false))
	l.Flocks.Release(n, Whole(f, false))
	l.Leases.Release(t, n, f)
}

// Text returns the text of /proc/locks.
func (l *Files) Text() string {
	all := slices.Concat(l.Flocks.entries(true), l.Ranges.entries(false), l.Leases.entries())
	slices.SortFunc(all, func(a, b *entry) int { return int(b.serial - a.serial) })
	var text []byte
	for i, e := range all {
		text = e.appendTree(text, i+1, 0)
	}
	return string(text)
}

// Held returns the lines of /proc/PID/fdinfo for the locks that were set by a file, for the file itself or for a process.
func (l *Files) Held(f File, process any) string {
	var text []byte
	n := 0
	for _, list := range [...][]*entry{l.Flocks.entries(true), l.Ranges.entries(false), l.Leases.entries()} {
		for _, e := range list {
			if e.File == f && (e.Owner == process || e.Owner == f) {
				n++
				text = e.append(append(text, "lock:\t"...), n, 0)
			}
		}
	}
	return string(text)
}

// appendTree appends the line of a lock, and the lines of the requests that wait for it.
func (e *entry) appendTree(text []byte, id, level int) []byte {
	text = e.append(text, id, level)
	for _, w := range e.waiters {
		text = w.appendTree(text, id, level+1)
	}
	return text
}

// append appends the line of a lock.
func (e *entry) append(text []byte, id, level int) []byte {
	text = fmt.Appendf(text, "%d: ", id)
	if level > 0 {
		const arrow = "-> "
		text = fmt.Appendf(text, "%*s", level-1+len(arrow), arrow)
	}
	text = fmt.Appendf(text, "%s%s %d ", e.kind, e.mode, e.PID)
	if e.File == nil {
		text = append(text, "<none>:0 "...)
	} else {
		at := e.File.Place()
		text = fmt.Appendf(text, "%02x:%02x:%d ", at.Device().Major, at.Device().Minor, at.Node.Attr().Inode)
	}
	if e.Last == math.MaxInt64 {
		return fmt.Appendf(text, "%d EOF\n", e.First)
	}
	return fmt.Appendf(text, "%d %d\n", e.First, e.Last)
}
