package posix

import (
	"loam/abi/linux"
	"loam/posix/file"
)

// Attach registers f to be called whenever the file behind fd becomes ready, until Detach. It calls f at once with the
// events that are ready now. f must not block and must not call the process. A descriptor can have only one such function,
// which belongs to the poller of the Go runtime. Errors: EBADF; EPERM for a file that is always ready; EEXIST if the
// descriptor has a function.
func (p *Process) Attach(fd int, f func(Events)) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, ready := o.File.(*treeFile); ready {
		return linux.EPERM
	}
	w := &file.Watch{Notify: f}
	if !p.fds.Poller(fd).CompareAndSwap(nil, w) {
		return linux.EEXIST
	}
	o.Queue().Add(w)
	f(o.Events())
	return 0
}

// Detach removes the function that Attach has registered for fd. Errors: EBADF, ENOENT.
func (p *Process) Detach(fd int) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	w := p.fds.Poller(fd).Swap(nil)
	if w == nil {
		return linux.ENOENT
	}
	o.Queue().Remove(w)
	return 0
}
