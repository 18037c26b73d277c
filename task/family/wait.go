package family

import (
	"slices"

	"loam/abi/linux"
)

// Ended lists the consequences of the end of a process.
type Ended struct {
	// Notify is the process that receives SIGCHLD, or nil. The caller also wakes the threads of that process that wait for
	// children.
	Notify *Process
	// Hangup contains the groups that became orphaned while a member was stopped. Each receives SIGHUP and SIGCONT.
	Hangup []PID
	// Orphans contains the children that have a new parent. A child that has requested a signal at the death of its parent
	// receives it. If a child is a zombie and not held, its new parent receives SIGCHLD.
	Orphans []*Process
}

// Exit ends a process. status is as wait4 reports it. Process 1 must not end.
func (t *Tree) Exit(p *Process, status int32) (e Ended) {
	before := t.watched(p)
	p.zombie, p.status, p.news, p.stopped = true, status, Nothing, false
	reaper := t.reaper(p)
	for _, c := range p.children {
		c.parent, c.adopted, c.Creator = reaper, true, 0
		c.parentID.Store(int32(reaper.PID))
		reaper.children = append(reaper.children, c)
		e.Orphans = append(e.Orphans, c)
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

// unwanted reports whether the parent does not wait for the process, so that it leaves no zombie. A parent that ignores SIGCHLD
// waits for a process that sends another signal at its end.
func (p *Process) unwanted() bool {
	return p.parent.NoZombies && p.EndSignal() == linux.SIGCHLD || p.adopted && p.parent.Foster
}

// EndSignal returns the signal that the process sends to its parent at its end; 0: none. It is SIGCHLD if the parent has adopted
// the process, or has executed another program since it created the process.
func (p *Process) EndSignal() int32 {
	if p.adopted || p.exitsTo != p.parent.Executions {
		return linux.SIGCHLD
	}
	return p.ExitSignal
}

// Release allows the parent to wait for a zombie that was held (Process.Held). It returns the parent to notify, or nil.
func (t *Tree) Release(p *Process) *Process {
	p.Held = false
	parent := p.parent
	if p.unwanted() {
		t.remove(p)
	}
	return parent
}

// Hush drops a stop or a continuation that was not reported yet: the parent traces the process, and gets the stops of each
// thread instead.
func (p *Process) Hush() { p.news = Nothing }

// watched returns the groups that the end of p can orphan, which are the groups of p and of its children, and for each
// whether it is orphaned already.
func (t *Tree) watched(p *Process) map[PID]bool {
	groups := map[PID]bool{p.Group: t.Orphaned(p.Group)}
	for _, c := range p.children {
		groups[c.Group] = t.Orphaned(c.Group)
	}
	return groups
}

// reaper returns the new parent of a process's children: the nearest ancestor with SubReaper set, or process 1.
func (t *Tree) reaper(p *Process) *Process {
	for a := p.parent; a != nil; a = a.parent {
		if a.SubReaper && !a.zombie {
			return a
		}
	}
	return t.init
}

// Undo removes a process that Fork has added and that has not run. Its parent never sees it.
func (t *Tree) Undo(p *Process) { t.remove(p) }

// remove removes a process without children from the tree.
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

// Wanted is the set of events that a wait requests.
type Wanted struct {
	Exited, Stopped, Continued bool
	Keep                       bool // WNOWAIT: the event is not consumed, and a later wait can report it again
	All, Clones                bool // __WALL: all children, also clones; __WCLONE: only clones
	// Of reports whether the wait is for children of a thread (__WNOTHREAD). nil: for those of all threads.
	Of func(creator PID) bool
}

// wants reports whether a wait is for a child. A clone is a child that sends another signal than SIGCHLD at its end, or none.
func (w *Wanted) wants(c *Process) bool {
	clone := c.ExitSignal != linux.SIGCHLD && !c.adopted
	return (w.All || clone == w.Clones) && (w.Of == nil || w.Of(c.Creator))
}

// Report is the result of a wait.
type Report struct {
	Event  Event // Nothing: no child has an event to report yet
	PID    PID
	Status int32
}

// Wait returns an event of a child that s selects, and consumes it. If the event is the end of the child, its zombie is
// removed. Errors: ECHILD if s selects no child.
func (t *Tree) Wait(caller *Process, s Selector, w Wanted) (Report, error) {
	some := false
	for _, c := range caller.children {
		if !s.selects(caller, c) || !w.wants(c) {
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

// report returns the event of a process if the wait requests it.
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
