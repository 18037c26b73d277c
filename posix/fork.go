package posix

import "loam/abi/linux"

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
	t.interrupt = interrupt
	return &t
}

// Fork returns a child with the process ID pid. The child has its own copies of the descriptor table and of the place in
// the file tree, except those in share. It refers to the same open files, and has neither record locks nor mappings.
// Errors: EMFILE.
func (p *Process) Fork(pid int32, share Share) (*Process, Errno) {
	child := &Process{System: p.System, place: p.place, fds: p.fds, own: &own{credentials: p.credentials, streams: p.streams}}
	child.credentials.PID = pid
	if share&SharePlace == 0 {
		child.place = &place{}
		child.view.Store(p.view.Load())
	}
	if share&ShareDescriptors == 0 {
		child.fds = &descriptors{}
		if errno := child.fds.copyFrom(p.fds); errno != 0 {
			child.fds.removeAll()
			return nil, errno
		}
	}
	return child, 0
}

// CloseOnExec closes the descriptors with FD_CLOEXEC, as execve(2) does.
func (p *Process) CloseOnExec() {
	for _, fd := range p.fds.list() {
		if p.fds.cloexec(fd) {
			p.Close(fd)
		}
	}
}

// CloseAll closes all descriptors. The process has ended, and no other shares its table.
func (p *Process) CloseAll() {
	for _, fd := range p.fds.list() {
		p.Close(fd)
	}
}

// copyFrom makes every descriptor of another table refer to the same file here. The table is empty. A descriptor that is
// closed meanwhile may be missing.
func (d *descriptors) copyFrom(other *descriptors) Errno {
	for _, fd := range other.list() {
		o := other.get(fd)
		if o == nil {
			continue
		}
		switch errno := d.replace(o, fd, other.cloexec(fd)); errno {
		case 0, linux.EBADF: // EBADF: closed since get
		default:
			return errno
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lowest = 0
	return 0
}
