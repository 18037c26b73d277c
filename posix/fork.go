package posix

import "loam/posix/file"

// Share says what a new process shares with the one that creates it, instead of getting a copy (clone(2)).
type Share uint8

// Values of Share: what parent and child share (clone(2)).
const (
	ShareDescriptors Share = 1 << iota // CLONE_FILES
	SharePlace                         // CLONE_FS
)

// Task returns a view of p for another of its threads. interrupt ends waits of that thread with EINTR.
func (p *Process) Task(interrupt *file.Interrupt) *Process {
	t := *p
	t.interrupt, t.bed = interrupt, &file.Bed{}
	return &t
}

// Fork returns a child process with the ID pid. The child gets copies of the descriptor table, and of root, working
// directory and umask; the parts that the parameter share names are shared instead of copied. It refers to the same
// open file descriptions, and has neither record locks nor shared mappings.
func (p *Process) Fork(pid int32, share Share) *Process {
	child := &Process{System: p.System, place: p.place, fds: p.fds, own: &own{credentials: p.credentials, streams: p.streams}}
	child.credentials.PID = pid
	child.timers.Init(p.clock, nil)
	child.detached.Store(p.detached.Load())
	child.limits.Store(p.limits.Load())
	if share&SharePlace == 0 {
		child.place = &place{}
		child.view.Store(p.view.Load())
	}
	if share&ShareDescriptors != 0 {
		child.fds.Share()
		return child
	}
	child.fds = p.fds.Copy()
	return child
}

// Exec returns the process for a new program (execve(2)). A shared descriptor table is replaced by a copy, and descriptors
// with FD_CLOEXEC are closed. Timers of timer_create(2) are deleted. The process has only one thread then.
func (p *Process) Exec() *Process {
	q := *p
	p.timers.Drop()
	if p.fds.Shared() {
		q.fds = p.fds.Copy()
		p.CloseAll()
	}
	for _, fd := range q.fds.List() {
		if q.fds.Cloexec(fd) {
			q.Close(fd)
		}
	}
	return &q
}

// CloseAll ends the process's use of its descriptor table. The last process that shares the table closes all descriptors.
func (p *Process) CloseAll() {
	if p.fds.Leave() {
		return
	}
	for _, fd := range p.fds.List() {
		p.Close(fd)
	}
}
