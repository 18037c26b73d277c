package posix

import (
	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/tty"
)

// Job control: see package tty.
type (
	Groups = tty.Groups
	Member = tty.Member
)

// SetMember sets the member that p acts for. It is called before p is used.
func (p *Process) SetMember(m Member) { p.member = m }

// SetGroups sets what sends the signals of terminals. Without it, the only process is that of New.
func (p *Process) SetGroups(g Groups) { p.terminals.SetGroups(g) }

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

// caller is the process as the caller of package tty.
type caller struct{ p *Process }

// IDs implements tty.Member.
func (c caller) IDs() (pid, group, session int32) { return c.p.job().IDs() }

// Ignores implements tty.Member.
func (c caller) Ignores(signal int) bool { return c.p.job().Ignores(signal) }

// Orphaned implements tty.Member.
func (c caller) Orphaned() bool { return c.p.job().Orphaned() }

// SignalGroup implements tty.Groups.
func (c caller) SignalGroup(group int32, signal int) { c.p.job().SignalGroup(group, signal) }

// SignalProcess implements tty.Groups.
func (c caller) SignalProcess(pid int32, signal int) { c.p.job().SignalProcess(pid, signal) }

// SessionOf implements tty.Groups.
func (c caller) SessionOf(group int32) int32 { return c.p.job().SessionOf(group) }

// May implements tty.Caller.
func (c caller) May(capability int) bool { return c.p.may(capability) }

// Detached implements tty.Caller.
func (c caller) Detached() bool { return c.p.detached.Load() }

// Detach implements tty.Caller.
func (c caller) Detach(on bool) { c.p.detached.Store(on) }

// Waiting implements tty.Caller.
func (c caller) Waiting() file.Task { return c.p.Waiting() }
