package family

import "loam/abi/linux"

// SetGroup moves a process to a process group (setpgid(2)). pid 0 means the caller; group 0 means the group with the number
// of the process.
func (t *Tree) SetGroup(caller *Process, pid, group PID) error {
	if group < 0 {
		return linux.EINVAL
	}
	p := caller
	if pid != 0 {
		p = t.processes[pid]
	}
	switch {
	case p == nil || p != caller && p.parent != caller:
		return linux.ESRCH
	case p != caller && p.Session != caller.Session:
		return linux.EPERM
	case p != caller && p.Executed:
		return linux.EACCES
	case p.Session == p.PID:
		return linux.EPERM
	}
	if group == 0 {
		group = p.PID
	}
	if group != p.PID && !t.inSession(group, caller.Session) {
		return linux.EPERM
	}
	t.name(-1, p.Group)
	p.Group = group
	t.name(1, p.Group)
	return nil
}

// inSession reports whether a group has a member in a session.
func (t *Tree) inSession(group, session PID) bool {
	for _, p := range t.processes {
		if p.Group == group && p.Session == session {
			return true
		}
	}
	return false
}

// SetSession makes a process the leader of a new session and group (setsid(2)).
func (t *Tree) SetSession(p *Process) error {
	for _, other := range t.processes {
		if other.Group == p.PID {
			return linux.EPERM
		}
	}
	t.name(-1, p.Group, p.Session)
	p.Group, p.Session = p.PID, p.PID
	t.name(1, p.Group, p.Session)
	return nil
}

// Members returns the processes of a group that have not ended.
func (t *Tree) Members(group PID) (all []*Process) {
	for _, p := range t.processes {
		if p.Group == group && !p.zombie {
			all = append(all, p)
		}
	}
	return all
}

// Orphaned reports whether a process group is orphaned: no member has a parent in another group of the same session. Members
// that have ended do not count.
func (t *Tree) Orphaned(group PID) bool {
	for _, p := range t.processes {
		if p.Group != group || p.zombie || p.parent == nil {
			continue
		}
		if p.Supervised || p.parent != t.init && p.parent.Group != group && p.parent.Session == p.Session {
			return false
		}
	}
	return true
}

// hasStopped reports whether a member of a group is stopped.
func (t *Tree) hasStopped(group PID) bool {
	for _, p := range t.processes {
		if p.Group == group && !p.zombie && p.stopped {
			return true
		}
	}
	return false
}
