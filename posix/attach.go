package posix

import "syscall"

// Attach has f told whenever the file that fd leads to becomes ready, beginning
// with what is ready now, until Detach. f must not block and not call the
// process. Each descriptor has room for one: the poller of the Go runtime.
// Errors: EBADF; EPERM for a file that is always ready; EEXIST.
func (p *Process) Attach(fd int, f func(Events)) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, ready := o.file.(*treeFile); ready {
		return syscall.EPERM
	}
	w := &watch{f: f}
	if !p.fds.poller(fd).CompareAndSwap(nil, w) {
		return syscall.EEXIST
	}
	o.queue().add(w)
	f(o.events())
	return 0
}

// Detach undoes Attach. Errors: EBADF, ENOENT.
func (p *Process) Detach(fd int) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	w := p.fds.poller(fd).Swap(nil)
	if w == nil {
		return syscall.ENOENT
	}
	o.queue().remove(w)
	return 0
}
