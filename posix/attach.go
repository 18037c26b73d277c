package posix

import "loam/abi/linux"

// Attach registers f to be called whenever the file behind fd becomes ready, until Detach. It calls f
// at once with the events that are ready now. f must not block and must not call the process. Each
// descriptor has room for one function: the poller of the Go runtime. Errors: EBADF; EPERM for a file
// that is always ready; EEXIST.
func (p *Process) Attach(fd int, f func(Events)) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, ready := o.file.(*treeFile); ready {
		return linux.EPERM
	}
	w := &watch{f: f}
	if !p.fds.poller(fd).CompareAndSwap(nil, w) {
		return linux.EEXIST
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
		return linux.ENOENT
	}
	o.queue().remove(w)
	return 0
}
