package posix

import "loam/posix/file"

// Share says what a new process shares with the one that creates it, instead of getting a copy (clone(2)).
type Share uint8

// Members of Share.
const (
	ShareDescriptors Share = 1 << iota // CLONE_FILES
	SharePlace                         // CLONE_FS
)

// Task returns p as another of its tasks sees it. A value received from interrupt ends a wait of that task with
// EINTR: see Process.
func (p *Process) Task(interrupt <-chan struct{}) *Process {
	t := *p
	t.interrupt, t.bed = interrupt, &file.Bed{}
	return &t
}

// Fork returns a child with the process ID pid. The child has its own copies of the descriptor table and of the place in
// the file tree, except those in share. It refers to the same open files, and has neither record locks nor mappings.
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

// SetSender sets how timers of a child send signals, before the child runs.
func (p *Process) SetSender(s Sender) { p.timers.SetSender(s) }

// Exec returns the process as a new program sees it (execve(2)): a descriptor table that was shared is copied, and
// descriptors with FD_CLOEXEC are closed. Timers of timer_create(2) end. The process has only one task.
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
