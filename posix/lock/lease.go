package lock

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Leases holds the leases of files (fcntl(2), F_SETLEASE). The holder of a lease gets a signal when another process opens or truncates
// the file in a way that conflicts with the lease. That process then waits until the holder ends or weakens the lease, at most for
// BreakTime. Leases implements fs.Lessor while there are leases.
type Leases struct {
	breakTime atomic.Int64 // BreakTime is the sum of this and DefaultBreakTime

	count atomic.Int32 // number of leases; Release returns at once if it is 0

	mu      sync.Mutex // guards the fields below; no other lock is acquired while it is held
	held    map[fs.Node][]*lease
	waiting []*Conflict   // attempts that wait or will wait, the oldest first
	changed chan struct{} // closed when a lease ends or is weakened; created by the first waiter
}

// lease is a read lease (F_RDLCK), which conflicts with writing, or a write lease (F_WRLCK), which conflicts with every open.
type lease struct {
	Lock   // the owner, its file and process; Write is not used
	kind   int
	wanted int       // what the kind must become before until, if that is not zero
	until  time.Time // the end of the time for a weaker lease; zero: no process waits
	notify func()
}

// DefaultBreakTime is the default of BreakTime.
const DefaultBreakTime = 45

// BreakTime is the time in seconds that the holder of a lease has to end it (/proc/sys/fs/lease-break-time). If it is 0, the time has no
// end.
func (l *Leases) BreakTime() int64 { return DefaultBreakTime + l.breakTime.Load() }

// SetBreakTime sets BreakTime.
func (l *Leases) SetBreakTime(n int64) { l.breakTime.Store(n - DefaultBreakTime) }

// patience returns the break time as a duration.
func (l *Leases) patience() time.Duration {
	if n := l.BreakTime(); n > 0 {
		return time.Duration(n) * time.Second
	}
	const century = 100 * 365 * 24 * time.Hour
	return century
}

// Set sets the lease of an owner, with its file and process, on a file of a tree; F_UNLCK removes it. The function notify is called, without
// a lock, when the lease must end or be weakened. Errors: EAGAIN if another lease conflicts, if a process waits to open the file in a
// conflicting way or, for F_UNLCK, if there is no lease.
func (l *Leases) Set(t *fs.Tree, n fs.Node, of Lock, kind int, notify func()) linux.Errno {
	of.locate()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(n)
	if l.awaited(n, kind) {
		return linux.EAGAIN
	}
	var own *lease
	for _, h := range l.held[n] {
		switch {
		case h.Owner == of.Owner:
			own = h
		case kind == linux.F_WRLCK, kind == linux.F_RDLCK && !h.until.IsZero() && h.wanted == linux.F_UNLCK:
			return linux.EAGAIN
		}
	}
	switch {
	case own != nil:
		l.weaken(n, own, kind)
	case kind == linux.F_UNLCK:
		return linux.EAGAIN
	default:
		if l.held == nil {
			l.held = map[fs.Node][]*lease{}
		}
		of.number()
		l.held[n] = append(l.held[n], &lease{Lock: of, kind: kind, notify: notify})
		l.count.Add(1)
	}
	l.register(t)
	return 0
}

// awaited reports whether a process waits to open the file in a way that conflicts with a lease of a kind. On Linux, such a process has the
// file open already. The caller holds mu.
func (l *Leases) awaited(n fs.Node, kind int) bool {
	return kind != linux.F_UNLCK && slices.ContainsFunc(l.waiting, func(c *Conflict) bool {
		return c.node == n && (c.write || kind == linux.F_WRLCK)
	})
}

// register makes l the lessor of the tree while there are leases. The caller holds mu.
func (l *Leases) register(t *fs.Tree) {
	if l.count.Load() > 0 {
		t.SetLessor(l)
	} else {
		t.SetLessor(nil)
	}
}

// weaken changes the kind of a lease, which may end it, and wakes the waiters. The caller holds mu.
func (l *Leases) weaken(n fs.Node, h *lease, kind int) {
	h.kind = kind
	if kind == linux.F_UNLCK || h.wanted == linux.F_RDLCK && kind == linux.F_RDLCK {
		h.until = time.Time{}
	}
	if kind == linux.F_UNLCK {
		l.held[n] = slices.DeleteFunc(l.held[n], func(o *lease) bool { return o == h })
		if l.count.Add(-1); len(l.held[n]) == 0 {
			delete(l.held, n)
		}
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// expire weakens the leases of a file whose holders have not done so in time. The caller holds mu.
func (l *Leases) expire(n fs.Node) {
	now := time.Now()
	for _, h := range slices.Clone(l.held[n]) {
		if !h.until.IsZero() && !now.Before(h.until) {
			l.weaken(n, h, h.wanted)
		}
	}
}

// Kind returns the kind of lease that an owner has on a file, or F_UNLCK. While a process waits for the end of the lease, it is the kind
// that the lease must become.
func (l *Leases) Kind(n fs.Node, owner any) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(n)
	for _, h := range l.held[n] {
		switch {
		case h.Owner != owner:
		case !h.until.IsZero():
			return h.wanted
		default:
			return h.kind
		}
	}
	return linux.F_UNLCK
}

// Release ends the lease of an owner whose file is being closed.
func (l *Leases) Release(t *fs.Tree, n fs.Node, owner any) {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.held[n] {
		if h.Owner == owner {
			l.weaken(n, h, linux.F_UNLCK)
			l.register(t)
			return
		}
	}
}

// Conflict is the error of an attempt to open a file with a lease.
type Conflict struct {
	leases *Leases
	node   fs.Node
	write  bool
	pid    int32 // the process that waits; 0 before it does
}

// Error implements error, and Errno converts the error for calls that do not wait.
func (c *Conflict) Error() string      { return "the file has a lease" }
func (c *Conflict) Errno() linux.Errno { return linux.EAGAIN }

// MayOpen implements fs.Lessor. If flags allow writing and do not contain O_NONBLOCK, the caller must call Wait of the Conflict. Such an attempt
// counts as waiting before the holders get their signals.
func (l *Leases) MayOpen(n fs.Node, flags fs.Flags) error {
	c := &Conflict{leases: l, node: n, write: flags.MayWrite()}
	l.mu.Lock()
	var report []func()
	l.expire(n)
	found := c.leases.conflicting(c)
	for _, h := range found {
		wanted := linux.F_RDLCK
		if c.write {
			wanted = linux.F_UNLCK
		}
		if !h.until.IsZero() && (h.wanted == wanted || h.wanted == linux.F_UNLCK) {
			continue
		}
		h.wanted, h.until = wanted, time.Now().Add(l.patience())
		report = append(report, h.notify)
	}
	if len(found) > 0 && c.write && flags&linux.O_NONBLOCK == 0 {
		l.waiting = append(l.waiting, c)
	}
	l.mu.Unlock()
	for _, notify := range report {
		notify()
	}
	if len(found) == 0 {
		return nil
	}
	return c
}

// conflicting returns the leases that prevent an attempt. The caller holds mu.
func (l *Leases) conflicting(c *Conflict) (found []*lease) {
	for _, h := range l.held[c.node] {
		if c.write || h.kind == linux.F_WRLCK {
			found = append(found, h)
		}
	}
	return found
}

// Wait waits until no lease prevents the attempt of a process. Errors: EINTR.
func (c *Conflict) Wait(task file.Task, pid int32) linux.Errno {
	l := c.leases
	l.mu.Lock()
	c.pid = pid
	if !slices.Contains(l.waiting, c) {
		l.waiting = append(l.waiting, c)
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = slices.DeleteFunc(l.waiting, func(o *Conflict) bool { return o == c })
	}()
	for {
		changed, left := c.left()
		if changed == nil {
			return 0
		}
		timer := time.NewTimer(left)
		end := task.Wait(changed, timer.C)
		timer.Stop()
		if end == file.Interrupted {
			return linux.EINTR
		}
	}
}

// left returns a channel that is closed when a lease changes, and the time until the first lease that prevents the attempt expires. The
// channel is nil if none prevents it.
func (c *Conflict) left() (<-chan struct{}, time.Duration) {
	l := c.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(c.node)
	found := l.conflicting(c)
	if len(found) == 0 {
		return nil, 0
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	left := l.patience()
	for _, h := range found {
		if !h.until.IsZero() {
			left = min(left, time.Until(h.until))
		}
	}
	return l.changed, left
}
