package posix

import "loam/abi/linux"

// Groups sends signals to processes by their IDs. Package task implements it for Linux programs. Its methods take locks of
// their own, so no lock of a file is held while they are called.
type Groups interface {
	// SignalGroup sends a signal of the kernel's to a process group, and SignalProcess to a process.
	SignalGroup(group int32, signal int)
	SignalProcess(pid int32, signal int)
	// SessionOf returns the session of a process group, or 0 if no process is in the group.
	SessionOf(group int32) int32
}

// Member is the thread that makes a call, as job control sees it.
type Member interface {
	Groups
	// IDs returns the thread's process, and its process group and session.
	IDs() (pid, group, session int32)
	// Ignores reports whether the thread blocks a signal, or its process ignores it.
	Ignores(signal int) bool
	// Orphaned reports whether the process group is orphaned (POSIX.1-2017, 3.264).
	Orphaned() bool
}

// SetMember sets the member that p acts for. It is called before p is used.
func (p *Process) SetMember(m Member) { p.member = m }

// SetGroups sets what sends the signals of terminals. Without it, the only process is that of New.
func (p *Process) SetGroups(g Groups) { p.terminals.groups.Store(&holder{g}) }

// holder makes an interface a pointer.
type holder struct{ Groups }

// alone is the only process of a system without package task: its session and its process group have its ID.
type alone struct {
	kernel Kernel
	pid    int32
}

// IDs implements Member.
func (a alone) IDs() (pid, group, session int32) { return a.pid, a.pid, a.pid }

// Ignores implements Member.
func (a alone) Ignores(int) bool { return false }

// Orphaned implements Member.
func (a alone) Orphaned() bool { return true }

// SignalGroup implements Groups.
func (a alone) SignalGroup(group int32, signal int) { a.SignalProcess(group, signal) }

// SignalProcess implements Groups.
func (a alone) SignalProcess(pid int32, signal int) {
	if a.kernel != nil && pid == a.pid {
		a.kernel.Call(linux.SYS_KILL, uint64(pid), uint64(signal), 0, 0, 0, 0)
	}
}

// SessionOf implements Groups.
func (a alone) SessionOf(group int32) int32 {
	if group == a.pid {
		return a.pid
	}
	return 0
}

// job returns the member that p acts for.
func (p *Process) job() Member {
	if p.member != nil {
		return p.member
	}
	return alone{p.kernel, p.credentials.PID}
}

// groupsOf returns the groups of the system.
func (p *Process) groupsOf() Groups {
	if h := p.terminals.groups.Load(); h != nil {
		return h.Groups
	}
	return alone{p.kernel, p.credentials.PID}
}
