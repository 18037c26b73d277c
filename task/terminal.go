package task

import (
	"loam/abi/linux"
	"loam/posix"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/posix/file"
	"loam/task/family"
	"loam/task/signal"
)

// This file implements job control: interfaces by which package posix reads and signals the processes that
// use a terminal.

// groups implements posix.Groups.
type groups struct{ *System }

// SignalGroup implements posix.Groups.
func (g groups) SignalGroup(group int32, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sendGroup(family.PID(group), signal.Info{Signal: signal.Number(n), Code: signal.CodeKernel})
}

// SignalProcess implements posix.Groups.
func (g groups) SignalProcess(pid int32, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.processes[family.PID(pid)]; p != nil {
		p.send(nil, signal.Info{Signal: signal.Number(n), Code: signal.CodeKernel})
	}
}

// SessionOf implements posix.Groups.
func (g groups) SessionOf(group int32) int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.tree.Members(family.PID(group)) {
		return int32(p.Session)
	}
	return 0
}

// member implements posix.Member for a thread.
type member struct {
	groups
	task *Task
}

// IDs implements posix.Member.
func (m member) IDs() (pid, group, session int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.task.process.node
	return int32(n.PID), int32(n.Group), int32(n.Session)
}

// Ignores implements posix.Member.
func (m member) Ignores(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.task.signals.Mask().Has(signal.Number(n)) || m.task.process.ignores(n)
}

// Orphaned implements posix.Member.
func (m member) Orphaned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree.Orphaned(m.task.process.node.Group)
}

// ignores reports whether the process ignores a signal. The caller holds System.mu.
func (p *Process) ignores(n int) bool {
	return p.signals.Action(signal.Number(n)).Handler == signal.Ignore
}

// callAs sets the process of package posix, and the credentials, with which the task makes its system calls
// from now on.
func (t *Task) callAs(files *posix.Process, creds *credential.Set) {
	t.caller.Process = files.Task(t.interrupt)
	t.caller.Process.SetIdentity(int32(t.id), *creds, t.rest)
	t.caller.Process.SetMember(member{groups{t.process.system}, t})
}

// attach makes the task's process the leader of a new session, whose controlling terminal is the terminal at
// descriptor 0.
func (t *Task) attach() linux.Errno {
	p, s := t.process, t.process.system
	s.mu.Lock()
	err := s.tree.SetSession(p.node)
	p.node.Supervised = true
	p.stops = make(chan struct{}, 1)
	s.mu.Unlock()
	if err != nil {
		return file.ToErrno(err)
	}
	_, errno := t.caller.Process.TerminalValue(0, linux.TIOCSCTTY, 0)
	return errno
}

// Stopped returns a channel that receives when the process has been stopped. Only a process with Program.Terminal has one.
// The channel has capacity 1; it is full while the receiver has not seen an earlier stop; it is never closed.
func (p *Process) Stopped() <-chan struct{} { return p.stops }

// notifyStop reports a stop of the process to the goroutine that receives from Stopped. The caller holds System.mu.
func (p *Process) notifyStop() {
	select {
	case p.stops <- struct{}{}:
	default:
	}
}

// Continue sends SIGCONT to the process group of the process, as a shell does to continue a job.
func (p *Process) Continue() {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	p.system.sendGroup(p.node.Group, signal.Info{Signal: signal.Continue, Code: signal.CodeUser})
}

// Ignores reports whether the process ignores a signal.
func (p *Process) Ignores(n int) bool {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	return p.ignores(n)
}

// endSession ends the use of the controlling terminal by the session of a process that has ended, if it led the session.
func (p *Process) endSession() {
	p.system.mu.Lock()
	leads := p.node.Session == p.node.PID
	p.system.mu.Unlock()
	if leads {
		p.posix.EndSession(int32(p.node.PID))
	}
}

// vhangup implements vhangup(2).
func vhangup(t *Task, _ call.Args) (uint64, linux.Errno) { return 0, t.caller.Process.Vhangup() }
