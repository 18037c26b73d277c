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

// locate stores the device and the inode number of the file. The list does not ask the file for them, because the file may be closed
// when the list is read, and because a file of the host's may answer late.
func (l *Lock) locate() {
	if l.File != nil {
		at := l.File.Place()
		l.device, l.inode = at.Device(), at.Node.Attr().Inode
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

// Limits of the list. Without them, a chain of n requests would take n² bytes and steps.
const (
	deepest  = 50      // levels of requests; the requests that belong below are listed at the last level
	widest   = 1000    // requests at one level that are compared with a new request
	mostText = 1 << 20 // bytes of the text, without the last line
)

// entry returns the entry of a lease.
func (h *lease) entry() *entry {
	e := &entry{Lock: h.Lock, kind: leaseKind, mode: modes[h.kind]}
	if e.Write = h.kind == linux.F_WRLCK; !h.until.IsZero() {
		e.kind, e.mode = breakingKind, modes[h.wanted]
	}
	return e
}

// enqueue adds a request to the first element that blocks it, or to a request that waits for that element and also blocks it.
func enqueue(list []*entry, w *entry) {
	var blocker *entry
	for range deepest {
		i := slices.IndexFunc(list, func(h *entry) bool { return h.blocks(w.Lock) })
		if i < 0 {
			break
		}
		blocker = list[i]
		list = blocker.waiters[:min(len(blocker.waiters), widest)]
	}
	if blocker != nil {
		blocker.waiters = append(blocker.waiters, w)
	}
}

// group is a copy of the locks of one file and of the requests that wait for them, the oldest first.
type group struct {
	held  []Lock
	queue []*Lock
}

// groups returns copies of all locks. The tree of requests is built from them, so that a reader of a long list stops no other caller.
func (t *Table) groups() (all []group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n, held := range t.locks {
		all = append(all, group{slices.Clone(held), slices.Clone(t.queue[n])})
	}
	return all
}

// entries returns the locks of a table; whole says that the table is that of flock(2).
func (t *Table) entries(whole bool) (all []*entry) {
	for _, g := range t.groups() {
		var list []*entry
		for _, l := range g.held {
			list = append(list, entryOf(l, whole))
		}
		for _, w := range g.queue {
			enqueue(list, entryOf(*w, whole))
		}
		all = append(all, list...)
	}
	return all
}

// entries returns the leases.
func (l *Leases) entries() (all []*entry) {
	held, waiting := l.groups()
	for n, list := range held {
		for _, b := range waiting[n] {
			enqueue(list, b)
		}
		all = append(all, list...)
	}
	return all
}

// groups returns the leases of each file, and the attempts that wait, the oldest first.
func (l *Leases) groups() (held, waiting map[fs.Node][]*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, waiting = map[fs.Node][]*entry{}, map[fs.Node][]*entry{}
	for n, leases := range l.held {
		for _, h := range leases {
			held[n] = append(held[n], h.entry())
		}
	}
	for _, c := range l.waiting {
		if c.pid != 0 {
			b := entryOf(Whole(c, c.write), true)
			b.kind, b.PID = breakerKind, c.pid
			waiting[c.node] = append(waiting[c.node], b)
		}
	}
	return held, waiting
}

// Files holds all locks and leases of files.
type Files struct {
	Flocks Table // locks of flock(2)
	Ranges Table // locks of fcntl(2)
	Leases Leases
}

// Release ends the lease and all locks that were set by a file of a tree that is being closed. Record locks of processes are among them if
// processes share a descriptor table, and one closes the file by which another has set a lock.
func (l *Files) Release(t *fs.Tree, f File) {
	if l.Ranges.Len() == 0 && l.Flocks.Len() == 0 && l.Leases.count.Load() == 0 {
		return
	}
	n := f.Place().Node
	l.Ranges.close(n, f)
	l.Flocks.close(n, f)
	l.Leases.Release(t, n, f)
}

// Text returns the text of /proc/locks. It ends after mostText bytes.
func (l *Files) Text() string {
	all := slices.Concat(l.Flocks.entries(true), l.Ranges.entries(false), l.Leases.entries())
	slices.SortFunc(all, func(a, b *entry) int { return int(b.serial - a.serial) })
	var text []byte
	for i, e := range all {
		text = e.appendTree(text, i+1, 0)
	}
	return string(text)
}

// Held returns the lines of /proc/PID/fdinfo for the locks that were set by a file, for the file itself or for a process. The text ends
// after mostText bytes.
func (l *Files) Held(f File, process any) string {
	n := f.Place().Node
	var text []byte
	for i, e := range slices.Concat(l.Flocks.held(n, f, process, true), l.Ranges.held(n, f, process, false), l.Leases.holding(n, f)) {
		if len(text) >= mostText {
			break
		}
		text = e.append(append(text, "lock:\t"...), i+1, 0)
	}
	return string(text)
}

// held returns the locks that were set by an open file of a node, for the file itself or for a process.
func (t *Table) held(n fs.Node, f File, process any, whole bool) (list []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.locks[n] {
		if h.File == f && (h.Owner == process || h.Owner == f) {
			list = append(list, entryOf(h, whole))
		}
	}
	return list
}

// holding returns the lease of an open file of a node, if it has one.
func (l *Leases) holding(n fs.Node, f File) (list []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.held[n] {
		if h.File == f {
			list = append(list, h.entry())
		}
	}
	return list
}

// appendTree appends the line of a lock, and the lines of the requests that wait for it.
func (e *entry) appendTree(text []byte, id, level int) []byte {
	if len(text) >= mostText {
		return text
	}
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
		text = fmt.Appendf(text, "%02x:%02x:%d ", e.device.Major, e.device.Minor, e.inode)
	}
	if e.Last == math.MaxInt64 {
		return fmt.Appendf(text, "%d EOF\n", e.First)
	}
	return fmt.Appendf(text, "%d %d\n", e.First, e.Last)
}
