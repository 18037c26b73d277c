package posix

import (
	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/tty"
)

// Job control: see posix/tty.
type (
	Groups = tty.Groups
	Member = tty.Member
)

// SetMember sets the thread, as job control sees it, on whose behalf p makes calls. It is called before p is used.
func (p *Process) SetMember(m Member) { p.member = m }

// SetGroups sets the component that sends signals of terminals. Without it, only the process that New has returned receives
// signals.
func (p *Process) SetGroups(g Groups) { p.terminals.SetGroups(g) }

// alone is a process for which package task is not used: a Go program. It is the only process, and its process ID is also
// the ID of its session and process group.
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

// job returns the thread, as job control sees it, on whose behalf p makes calls.
func (p *Process) job() Member {
	if p.member != nil {
		return p.member
	}
	return alone{p.kernel, p.credentials.PID}
}

// caller is a process as a tty.Caller.
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
