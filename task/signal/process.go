package signal

import "slices"

// Process holds what the threads of a process share.
type Process struct {
	// Init is process 1: only signals for which it has a handler reach it.
	Init    bool
	actions [Last + 1]Action
	pending queue
	threads []*Thread
}

// Thread holds what a thread has for itself.
type Thread struct {
	// Traced is a thread with a debugger, which sees all signals of the thread, ignored ones included.
	Traced  bool
	process *Process
	mask    Set
	saved   *Set // the mask to restore after a handler, set by Suspend (sigsuspend, ppoll)
	sought  Set  // blocked signals that the thread waits for, set by Seek
	pending queue
}

// queue is a set of pending signals with their infos, in the order of arrival. A signal can be
// pending without an info, if there was no room.
type queue struct {
	set   Set
	infos []Info
}

// Outcome is the result of sending a signal.
type Outcome struct {
	// Wake is the thread that has something to take now, or nil. It leaves its wait.
	Wake *Thread
	// Kill is set if the process ends: the caller wakes all threads, which then end.
	Kill bool
	// Resume says that a stopped process continues.
	Resume bool
	// Full says that a real-time signal found no room: sigqueue returns EAGAIN.
	Full bool
}

// NewProcess returns a process with default dispositions and one thread.
func NewProcess() (*Process, *Thread) {
	p := &Process{}
	return p, p.Clone(0)
}

// Clone returns another thread of the process.
func (p *Process) Clone(mask Set) *Thread {
	t := &Thread{process: p, mask: mask &^ unblockable}
	p.threads = append(p.threads, t)
	return t
}

// Exit ends a thread. Its own signals are lost; others of the process stay pending.
func (t *Thread) Exit() {
	p := t.process
	p.threads = slices.DeleteFunc(p.threads, func(o *Thread) bool { return o == t })
}

// Fork returns the process of a child with the thread that called fork. Nothing is pending there.
func (t *Thread) Fork() (*Process, *Thread) {
	child := &Process{actions: t.process.actions}
	return child, child.Clone(t.mask)
}

// Exec makes handlers default: a new program has no code for them. Ignored signals stay ignored. t is the only thread
// that is left.
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

// SetAction changes the disposition of a signal and returns whether it may be changed (EINVAL
// otherwise). A signal that becomes ignored is no longer pending.
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

// ignored reports whether a signal would do nothing.
func (p *Process) ignored(n Number) bool {
	h := p.actions[n].Handler
	return h == Ignore || h == Default && defaultEffect(n) == None
}

// flush removes signals from all queues.
func (p *Process) flush(s Set) {
	p.pending.remove(s)
	for _, t := range p.threads {
		t.pending.remove(s)
	}
}

// Mask returns the blocked signals.
func (t *Thread) Mask() Set { return t.mask }

// SetMask changes the blocked signals. SIGKILL and SIGSTOP cannot be blocked.
func (t *Thread) SetMask(s Set) { t.mask = s &^ unblockable }

// Suspend sets a mask for the time of a wait (sigsuspend, ppoll, pselect, epoll_pwait). The old one comes back by
// Resume, or after the handler that ends the wait.
func (t *Thread) Suspend(s Set) {
	old := t.mask
	t.saved = &old
	t.SetMask(s)
}

// Resume restores the mask after a wait that no handler ended.
func (t *Thread) Resume() {
	if t.saved != nil {
		t.mask, t.saved = *t.saved, nil
	}
}

// Seek unblocks signals that the thread waits for with Take (sigtimedwait). A blocked signal of the set then wakes the
// thread, but ends no process and is not discarded. Sought blocks the signals again.
func (t *Thread) Seek(s Set) {
	t.sought = t.mask & s
	t.mask &^= s
}

// Sought ends Seek.
func (t *Thread) Sought() { t.mask, t.sought = t.mask|t.sought, 0 }

// Pending returns the signals that are pending for the thread and blocked or not (sigpending masks them).
func (t *Thread) Pending() Set { return t.pending.set | t.process.pending.set }

// Deliverable reports whether Next has something to do: waits end with EINTR or are restarted.
func (t *Thread) Deliverable() bool { return t.Pending()&^t.mask != 0 }

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
		o.Full = i.Code != CodeUser && i.Code != CodeKernel && i.Code != CodeThread
		if o.Full {
			return o
		}
	}
	o.Wake = p.chosen(to, n)
	o.Kill = n == Kill || o.Wake != nil && !o.Wake.Traced && p.fatal(n) && !o.Wake.sought.Has(n)
	return o
}

// fatal reports whether a signal ends the process at once. One with a core dump is left to Next.
func (p *Process) fatal(n Number) bool {
	return p.actions[n].Handler == Default && defaultEffect(n) == Terminate
}

// discards reports whether a signal is dropped when it is sent: it is ignored, and no thread that
// could take it blocks it (a blocked signal may find a handler later).
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
	return to == nil || !(to.mask|to.sought).Has(n) && (!to.Traced || n == Kill)
}

// chosen returns the thread to wake: the target, or the first that does not block the signal.
func (p *Process) chosen(to *Thread, n Number) *Thread {
	if to != nil {
		if to.mask.Has(n) {
			return nil
		}
		return to
	}
	for _, t := range p.threads {
		if !t.mask.Has(n) {
			return t
		}
	}
	return nil
}

// add makes a signal pending. It reports whether its info found room; without, a standard signal is pending
// nevertheless, and a real-time signal once. A standard signal that is pending already keeps its info.
func (q *queue) add(i Info, room bool) bool {
	s := SetOf(i.Signal)
	if i.Signal < firstRealTime && q.set&s != 0 {
		return true
	}
	if !room && i.Signal >= firstRealTime && i.Code == CodeQueue {
		return false
	}
	q.set |= s
	if room || i.Signal < firstRealTime {
		q.infos = append(q.infos, i)
	}
	return room || i.Signal < firstRealTime
}

func (q *queue) remove(s Set) {
	q.set &^= s
	q.infos = slices.DeleteFunc(q.infos, func(i Info) bool { return s.Has(i.Signal) })
}

// take removes the first of the signals in s.
func (q *queue) take(s Set) (Info, bool) {
	if q.set&s == 0 {
		return Info{}, false
	}
	n := (q.set & s).first()
	at := slices.IndexFunc(q.infos, func(i Info) bool { return i.Signal == n })
	if at < 0 { // its info found no room
		q.set &^= SetOf(n)
		return Info{Signal: n, Code: CodeUser}, true
	}
	i := q.infos[at]
	q.infos = slices.Delete(q.infos, at, at+1)
	if !slices.ContainsFunc(q.infos, func(i Info) bool { return i.Signal == n }) {
		q.set &^= SetOf(n)
	}
	return i, true
}
