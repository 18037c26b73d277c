package family

import (
	"slices"

	"loam/abi/linux"
)

// Ended lists the consequences of the end of a process.
type Ended struct {
	// Notify is the process that gets SIGCHLD, or nil. The caller also wakes the threads of that process that wait for
	// children.
	Notify *Process
	// Hangup are the groups that became orphaned with a stopped member: each gets SIGHUP and SIGCONT.
	Hangup []PID
	// Orphans are the children that have a new parent; those with a parent death signal get it.
	Orphans []*Process
	// Reapers are the new parents that have a zombie to wait for, and get SIGCHLD.
	Reapers []*Process
}

// Exit ends a process. status is as wait4 reports it. Process 1 must not end.
func (t *Tree) Exit(p *Process, status int32) (e Ended) {
	before := t.watched(p)
	p.zombie, p.status, p.news, p.stopped = true, status, Nothing, false
	reaper := t.reaper(p)
	for _, c := range p.children {
		c.parent, c.adopted = reaper, true
		c.parentID.Store(int32(reaper.PID))
		reaper.children = append(reaper.children, c)
		e.Orphans = append(e.Orphans, c)
		if c.zombie && !c.Held {
			e.Reapers = append(e.Reapers, reaper)
		}
	}
	orphans := p.children
	p.children = nil
	for _, c := range orphans {
		if c.zombie && c.unwanted() && !c.Held {
			t.remove(c)
		}
	}
	for group, orphaned := range before {
		if !orphaned && t.Orphaned(group) && t.hasStopped(group) {
			e.Hangup = append(e.Hangup, group)
		}
	}
	slices.Sort(e.Hangup)
	e.Notify = p.parent
	if p.unwanted() && !p.Held {
		t.remove(p)
	}
	return e
}

// unwanted reports whether the parent does not wait for the process.
func (p *Process) unwanted() bool { return p.parent.NoZombies || p.adopted && p.parent.Foster }

// Release lets the parent wait for a zombie that was held, and returns the parent to notify, or nil.
func (t *Tree) Release(p *Process) *Process {
	p.Held = false
	parent := p.parent
	if p.unwanted() {
		t.remove(p)
	}
	return parent
}

// Hush drops news of a stop or a continuation: the tracer, which is the parent, sees the stops of each thread.
func (p *Process) Hush() { p.news = Nothing }

// watched returns the groups that the end of p can orphan, its own and its children's, and whether they are orphaned already.
func (t *Tree) watched(p *Process) map[PID]bool {
	groups := map[PID]bool{p.Group: t.Orphaned(p.Group)}
	for _, c := range p.children {
		groups[c.Group] = t.Orphaned(c.Group)
	}
	return groups
}

// reaper returns the new parent of a process's children: the nearest ancestor that asked for it, or process 1.
func (t *Tree) reaper(p *Process) *Process {
	for a := p.parent; a != nil; a = a.parent {
		if a.SubReaper && !a.zombie {
			return a
		}
	}
	return t.init
}

// remove forgets a zombie.
func (t *Tree) remove(p *Process) {
	p.parent.children = slices.DeleteFunc(p.parent.children, func(c *Process) bool { return c == p })
	delete(t.processes, p.PID)
	t.name(-1, p.PID, p.Group, p.Session)
}

// Stop records that a process has stopped by a signal. The parent is notified unless it has SA_NOCLDSTOP.
func (p *Process) Stop(signal int32) { p.stopped, p.news, p.status = true, Stopped, signal }

// Continue records that a process runs again. It reports whether it was stopped.
func (p *Process) Continue() bool {
	if !p.stopped {
		return false
	}
	p.stopped, p.news = false, Continued
	return true
}

// Selector selects the children for a wait, like the argument pid of waitpid(2): a positive number selects a process, 0 the
// caller's process group, -1 any child, and -n the process group n.
type Selector PID

// Wanted are the events that a wait asks for.
type Wanted struct {
	Exited, Stopped, Continued bool
	Keep                       bool // WNOWAIT: the child can be waited for again
}

// Report is the result of a wait.
type Report struct {
	Event  Event // Nothing: no child has news yet
	PID    PID
	Status int32
}

// Wait returns news of a child, and takes them. The zombie of a reported end goes. Errors: ECHILD if no
// child is meant.
func (t *Tree) Wait(caller *Process, s Selector, w Wanted) (Report, error) {
	some := false
	for _, c := range caller.children {
		if !s.selects(caller, c) {
			continue
		}
		some = true
		if r := c.report(w); r.Event != Nothing {
			if !w.Keep {
				t.taken(c)
			}
			return r, nil
		}
	}
	if !some {
		return Report{}, linux.ECHILD
	}
	return Report{}, nil
}

func (s Selector) selects(caller, c *Process) bool {
	switch {
	case s > 0:
		return c.PID == PID(s)
	case s == 0:
		return c.Group == caller.Group
	case s == -1:
		return true
	}
	return c.Group == PID(-s)
}

// report returns the news of a process that a wait wants.
func (p *Process) report(w Wanted) Report {
	switch {
	case p.zombie && w.Exited && !p.Held:
		return Report{Exited, p.PID, p.status}
	case p.news == Stopped && w.Stopped:
		return Report{Stopped, p.PID, p.status}
	case p.news == Continued && w.Continued:
		return Report{Continued, p.PID, 0}
	}
	return Report{}
}

func (t *Tree) taken(p *Process) {
	if p.zombie {
		t.remove(p)
	}
	p.news = Nothing
}
