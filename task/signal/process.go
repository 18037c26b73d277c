package signal

import (
	"math"
	"slices"
)

// Process holds the signal state that the threads of a process share.
type Process struct {
	// Init is set for process 1, which receives only signals for which it has a handler.
	Init    bool
	actions [Last + 1]Action
	pending queue
	threads []*Thread
}

// Thread holds the signal state of one thread.
type Thread struct {
	// Traced is set if the thread has a debugger, which sees all signals of the thread, including ignored ones.
	Traced    bool
	process   *Process
	mask      sharedSet
	saved     Set  // with suspended: mask to restore after a handler or a wait
	suspended bool // Suspend has replaced the mask (sigsuspend, ppoll)
	sought    Set  // blocked signals that the thread waits for, set by Seek
	pending   queue
}

// queue holds pending signals with their infos, in the order of arrival. If there was no room for an info, a signal can be
// pending without one.
type queue struct {
	set   sharedSet
	infos []Info
}

// Outcome is the result of sending a signal.
type Outcome struct {
	// Wake is a thread that can take the signal now, or nil. The caller ends its wait.
	Wake *Thread
	// Kill is set if the signal ends the process. The caller wakes all threads, which then end.
	Kill bool
	// Resume is set if a stopped process continues.
	Resume bool
	// Full is set if there was no room for a real-time signal: sigqueue and tgkill then return EAGAIN.
	Full bool
}

// NewProcess returns a process with default dispositions and one thread.
func NewProcess() (*Process, *Thread) {
	p := &Process{}
	return p, p.Clone(0)
}

// Clone returns another thread of the process.
func (p *Process) Clone(mask Set) *Thread {
	t := &Thread{process: p}
	t.SetMask(mask)
	p.threads = append(p.threads, t)
	return t
}

// Exit ends a thread. Signals that are pending for the thread are lost; signals of the process stay pending.
func (t *Thread) Exit() {
	p := t.process
	p.threads = slices.DeleteFunc(p.threads, func(o *Thread) bool { return o == t })
}

// Fork returns the signal state of a child process, whose only thread is a copy of t. No signal is pending in the child.
func (t *Thread) Fork() (*Process, *Thread) {
	child := &Process{actions: t.process.actions}
	return child, child.Clone(t.Mask())
}

// Exec prepares for a new program: it sets dispositions with handlers to the default, because the new program has no code
// for them. Ignored signals stay ignored. t is the only thread of the process.
func (t *Thread) Exec() {
	p := t.process
	for i := range p.actions {
		if p.actions[i].Handler != Ignore {
			p.actions[i] = Action{}
		}
		p.actions[i].Flags, p.actions[i].Mask, p.actions[i].Restorer = 0, 0, 0
	}
	p.threads = []*Thread{t}
}

// Action returns the disposition of a signal.
func (p *Process) Action(n Number) Action { return p.actions[n] }

// SetAction changes the disposition of a signal. It returns false if the disposition may not be changed (EINVAL). A pending
// signal that becomes ignored is dropped.
func (p *Process) SetAction(n Number, a Action) bool {
	if n < 1 || n > Last || unblockable.Has(n) {
		return false
	}
	a.Mask &^= unblockable
	p.actions[n] = a
	if p.ignored(n) {
		p.flush(SetOf(n))
	}
	return true
}

// ignored reports whether a signal would have no effect on the process.
func (p *Process) ignored(n Number) bool {
	h := p.actions[n].Handler
	return h == Ignore || h == Default && defaultEffect(n) == None
}

// flush removes signals from the queues of the process and its threads.
func (p *Process) flush(s Set) {
	p.pending.remove(s)
	for _, t := range p.threads {
		t.pending.remove(s)
	}
}

// Mask returns the blocked signals.
func (t *Thread) Mask() Set { return t.mask.load() }

// SetMask changes the blocked signals. SIGKILL and SIGSTOP cannot be blocked.
func (t *Thread) SetMask(s Set) { t.mask.store(s &^ unblockable) }

// Suspend sets a mask during a waiting call (sigsuspend, ppoll, pselect, epoll_pwait). The old mask is restored by Resume,
// or after the handler that ends the wait.
func (t *Thread) Suspend(s Set) {
	t.saved, t.suspended = t.Mask(), true
	t.SetMask(s)
}

// Resume restores the mask after a wait that no handler ended.
func (t *Thread) Resume() {
	if t.suspended {
		t.SetMask(t.saved)
		t.suspended = false
	}
}

// Seek unblocks signals that the thread waits for with Take (sigtimedwait). A blocked signal of the set then wakes the
// thread, but ends no process and is not discarded. Sought blocks the signals again.
func (t *Thread) Seek(s Set) {
	t.sought = t.Mask() & s
	t.SetMask(t.Mask() &^ s)
}

// Sought ends the effect of Seek: it blocks the signals again.
func (t *Thread) Sought() {
	t.SetMask(t.Mask() | t.sought)
	t.sought = 0
}

// Pending returns the signals that are pending for the thread or its process, whether blocked or not. sigpending returns the
// blocked ones of them.
func (t *Thread) Pending() Set { return t.pending.set.load() | t.process.pending.set.load() }

// Deliverable reports whether Next would return a signal. If so, a waiting call ends with EINTR or is restarted.
func (t *Thread) Deliverable() bool { return t.Pending()&^t.Mask() != 0 }

// Send sends a signal to the process. room reports whether the sender may queue another info
// (RLIMIT_SIGPENDING).
func (p *Process) Send(i Info, room bool) Outcome { return p.send(nil, i, room) }

// Send sends a signal to the thread alone.
func (t *Thread) Send(i Info, room bool) Outcome { return t.process.send(t, i, room) }

func (p *Process) send(to *Thread, i Info, room bool) (o Outcome) {
	n := i.Signal
	switch {
	case n == Continue:
		p.flush(stops)
		o.Resume = true
	case n == Kill:
		o.Resume = !p.Init
	case stops.Has(n):
		p.flush(SetOf(Continue))
	}
	if p.discards(to, n) {
		return o
	}
	q := &p.pending
	if to != nil {
		q = &to.pending
	}
	if !q.add(i, room) {
		o.Full = i.Code != CodeUser && i.Code != CodeKernel
		if o.Full {
			return o
		}
	}
	o.Wake = p.chosen(to, n)
	o.Kill = n == Kill || o.Wake != nil && !o.Wake.Traced && p.fatal(n) && !o.Wake.sought.Has(n)
	return o
}

// Overrun adds the expirations of a timer (TimerInfo) to its signal that is pending for the process. It returns false if none
// is pending.
func (p *Process) Overrun(i Info) bool { return p.pending.overrun(i) }

// Overrun is like Process.Overrun, for signals that are pending for the thread alone.
func (t *Thread) Overrun(i Info) bool { return t.pending.overrun(i) }

func (q *queue) overrun(i Info) bool {
	at := slices.IndexFunc(q.infos, func(p Info) bool { return p.Signal == i.Signal && p.Code == CodeTimer && p.PID == i.PID })
	if at < 0 {
		return false
	}
	q.infos[at].UID = uint32(min(uint64(q.infos[at].UID)+uint64(i.UID)+1, math.MaxInt32))
	return true
}

// fatal reports whether a signal ends the process at once. A signal that also dumps core takes effect in Next instead.
func (p *Process) fatal(n Number) bool {
	return p.actions[n].Handler == Default && defaultEffect(n) == Terminate
}

// discards reports whether signal n is dropped when it is sent, because the process ignores it. A signal that the
// receiving thread blocks is kept, because the program may set a handler before the thread unblocks the signal.
func (p *Process) discards(to *Thread, n Number) bool {
	if p.Init && p.actions[n].Handler == Default {
		return true
	}
	if !p.ignored(n) {
		return false
	}
	if to == nil && len(p.threads) > 0 {
		to = p.threads[0]
	}
	return to == nil || !(to.Mask()|to.sought).Has(n) && (!to.Traced || n == Kill)
}

// chosen returns the thread to wake: the thread to which the signal was sent, or the first one that does not block it.
func (p *Process) chosen(to *Thread, n Number) *Thread {
	if to != nil {
		if to.Mask().Has(n) {
			return nil
		}
		return to
	}
	for _, t := range p.threads {
		if !t.Mask().Has(n) {
			return t
		}
	}
	return nil
}

// add makes a signal pending. It reports whether there was room for its info. Without room, a standard signal becomes
// pending without an info, and a real-time signal becomes pending only once. A standard signal that is already pending keeps
// its info.
func (q *queue) add(i Info, room bool) bool {
	s := SetOf(i.Signal)
	if i.Signal < firstRealTime && q.set.load()&s != 0 {
		return true
	}
	if !room && i.Signal >= firstRealTime && (i.Code == CodeQueue || i.Code == CodeThread) {
		return false
	}
	q.set.store(q.set.load() | s)
	if room || i.Signal < firstRealTime {
		q.infos = append(q.infos, i)
	}
	return room || i.Signal < firstRealTime
}

func (q *queue) remove(s Set) {
	q.set.store(q.set.load() &^ s)
	q.infos = slices.DeleteFunc(q.infos, func(i Info) bool { return s.Has(i.Signal) })
}

// take removes the first of the signals in s.
func (q *queue) take(s Set) (Info, bool) {
	if q.set.load()&s == 0 {
		return Info{}, false
	}
	n := (q.set.load() & s).first()
	at := slices.IndexFunc(q.infos, func(i Info) bool { return i.Signal == n })
	if at < 0 { // there was no room for the info of the signal
		q.set.store(q.set.load() &^ SetOf(n))
		return Info{Signal: n, Code: CodeUser}, true
	}
	i := q.infos[at]
	q.infos = slices.Delete(q.infos, at, at+1)
	if !slices.ContainsFunc(q.infos, func(i Info) bool { return i.Signal == n }) {
		q.set.store(q.set.load() &^ SetOf(n))
	}
	return i, true
}
