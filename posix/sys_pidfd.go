package posix

import (
	"loam/abi/linux"
	"loam/posix/event"
)

// InstallProcess allocates a descriptor for a process, with FD_CLOEXEC. flags may contain O_NONBLOCK. Errors: EMFILE.
func (p *Process) InstallProcess(of Watched, flags int) (int, Errno) {
	return p.install(event.NewProcess(of), flags&linux.O_NONBLOCK|linux.O_CLOEXEC)
}

// CloseProcess closes a descriptor that InstallProcess has allocated for a process. It does nothing if another thread has
// closed the descriptor: its number may belong to another file.
func (p *Process) CloseProcess(fd int, of Watched) {
	if o := p.fds.Get(fd); o != nil {
		if f, ok := o.File.(*event.Process); ok && f.Of() == of {
			p.fds.RemoveIf(fd, o)
		}
	}
}

// WatchedProcess returns the process to which a pidfd refers, and whether the pidfd is non-blocking. Errors: EBADF if fd is
// not a pidfd.
func (p *Process) WatchedProcess(fd int) (of Watched, nonblocking bool, errno Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, false, errno
	}
	f, ok := o.File.(*event.Process)
	if !ok {
		return nil, false, linux.EBADF
	}
	return f.Of(), o.Nonblocking(), 0
}

// Receive allocates a descriptor for the open file description of a descriptor in another process (pidfd_getfd(2)). Errors:
// EBADF, EMFILE.
func (p *Process) Receive(from *Process, fd int) (int, Errno) {
	o, errno := from.getAny(fd)
	if errno != 0 {
		return -1, errno
	}
	return p.fds.Insert(o, 0, p.MostFiles(), true)
}

// FileOrder returns a number that is the same for descriptors of the same open file description, in all processes. Errors:
// EBADF.
func (p *Process) FileOrder(fd int) (uint64, Errno) {
	o, errno := p.getAny(fd)
	if errno != 0 {
		return 0, errno
	}
	return o.Number(&p.serial), 0
}

// SharesTable reports whether two processes share the descriptor table, and SharesPlace whether they share root, working
// directory and umask.
func (p *Process) SharesTable(with *Process) bool { return p.fds == with.fds }
func (p *Process) SharesPlace(with *Process) bool { return p.place == with.place }

// Unshare gives the process its own copy of the descriptor table, and of root, working directory and umask
// (unshare(2)). The parts that the parameter keep names stay shared.
func (p *Process) Unshare(keep Share) *Process {
	q := *p
	if keep&SharePlace == 0 {
		q.place = &place{}
		q.view.Store(p.view.Load())
	}
	if keep&ShareDescriptors == 0 && p.fds.Shared() {
		q.fds = p.fds.Copy()
		p.CloseAll()
	}
	return &q
}
