package posix

import (
	"time"

	"loam/abi/linux"
	"loam/posix/epoll"
	"loam/posix/file"
)

// PollFD is struct pollfd.
type PollFD = file.PollFD

// Poll implements poll(2) and ppoll(2), and select(2) once its sets have been decoded. It sets Revents
// and returns the number of entries with events. A negative timeout waits forever, and 0 does not
// wait. Errors: EINTR.
func (p *Process) Poll(fds []PollFD, timeout time.Duration) (int, Errno) {
	return p.fds.Poll(fds, timeout, p.Waiting())
}

// EpollCreate implements epoll_create1(2). Errors: EINVAL, EMFILE.
func (p *Process) EpollCreate(flags int) (int, Errno) {
	if flags&^linux.EPOLL_CLOEXEC != 0 {
		return -1, linux.EINVAL
	}
	return p.install(&epoll.Set{}, flags)
}

// EpollCtl implements epoll_ctl(2). Errors: EBADF, EEXIST, ENOENT, EINVAL, EPERM for a file that is
// always ready, ELOOP for a cycle or too many nested sets.
func (p *Process) EpollCtl(epfd, op, fd int, ev EpollEvent) Errno {
	e, errno := p.epoll(epfd)
	if errno != 0 {
		return errno
	}
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if f, ok := o.File.(*treeFile); ok && !file.HasAlerts(&f.File) {
		return linux.EPERM // files that are always ready cannot be added
	}
	if inner, ok := o.File.(*epoll.Set); ok {
		switch {
		case inner == e, op == linux.EPOLL_CTL_ADD && ev.Events&linux.EPOLLEXCLUSIVE != 0:
			return linux.EINVAL
		case op == linux.EPOLL_CTL_ADD && inner.Reaches(e, 1):
			return linux.ELOOP
		}
	}
	switch op {
	case linux.EPOLL_CTL_ADD:
		const allowed = linux.EPOLLEXCLUSIVE | linux.EPOLLWAKEUP | linux.EPOLLET | linux.POLLIN | linux.POLLOUT | linux.POLLERR | linux.POLLHUP
		if ev.Events&linux.EPOLLEXCLUSIVE != 0 && ev.Events&^allowed != 0 {
			return linux.EINVAL
		}
		return e.Add(fd, o, ev)
	case linux.EPOLL_CTL_MOD:
		if ev.Events&linux.EPOLLEXCLUSIVE == 0 {
			return e.Change(fd, o, ev)
		}
	case linux.EPOLL_CTL_DEL:
		return e.Remove(fd, o)
	}
	return linux.EINVAL
}

func (p *Process) epoll(fd int) (*epoll.Set, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	e, ok := o.File.(*epoll.Set)
	if !ok {
		return nil, linux.EINVAL
	}
	return e, 0
}

// EpollWait implements epoll_wait(2) and its variants. A negative timeout waits forever. Errors:
// EBADF, EINVAL, EINTR.
func (p *Process) EpollWait(epfd int, events []EpollEvent, timeout time.Duration) (int, Errno) {
	e, errno := p.epoll(epfd)
	switch {
	case errno != 0:
		return -1, errno
	case len(events) == 0:
		return -1, linux.EINVAL
	}
	if n := e.Collect(events); n > 0 || timeout == 0 {
		return n, 0
	}
	s := p.newSleeper(e.Queue(), max(timeout, 0))
	defer s.Leave()
	return e.Wait(events, s)
}
