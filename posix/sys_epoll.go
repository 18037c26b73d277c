package posix

import (
	"syscall"
	"time"
)

// EpollCreate is epoll_create1(2).
func (p *Process) EpollCreate(flags int) (int, Errno) {
	if flags&^syscall.EPOLL_CLOEXEC != 0 {
		return -1, syscall.EINVAL
	}
	return p.install(&epoll{}, flags)
}

// EpollCtl is epoll_ctl(2).
func (p *Process) EpollCtl(epfd, op, fd int, ev EpollEvent) Errno {
	e, errno := p.epoll(epfd)
	if errno != 0 {
		return errno
	}
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	switch inner := o.file.(type) {
	case *treeFile:
		return syscall.EPERM // it is always ready
	case *epoll:
		switch {
		case inner == e:
			return syscall.EINVAL
		case op == syscall.EPOLL_CTL_ADD && inner.reaches(e, 1):
			return syscall.ELOOP
		}
	}
	switch op {
	case syscall.EPOLL_CTL_ADD:
		return e.add(fd, o, ev)
	case syscall.EPOLL_CTL_MOD:
		if ev.Events&epollExclusive != 0 {
			return syscall.EINVAL
		}
		return e.change(fd, o, ev)
	case syscall.EPOLL_CTL_DEL:
		return e.remove(fd, o)
	}
	return syscall.EINVAL
}

func (p *Process) epoll(fd int) (*epoll, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	e, ok := o.file.(*epoll)
	if !ok {
		return nil, syscall.EINVAL
	}
	return e, 0
}

// EpollWait is epoll_wait(2) and its kin. A timeout below zero means for ever.
// Signals do not interrupt it: in a Go program they go to other threads.
func (p *Process) EpollWait(epfd int, events []EpollEvent, timeout time.Duration) (int, Errno) {
	e, errno := p.epoll(epfd)
	switch {
	case errno != 0:
		return -1, errno
	case len(events) == 0:
		return -1, syscall.EINVAL
	}
	if n := e.collect(events); n > 0 || timeout == 0 {
		return n, 0
	}
	s := newSleeper(&e.q, max(timeout, 0))
	defer s.leave()
	for {
		if n := e.collect(events); n > 0 {
			return n, 0
		}
		if !s.sleep() {
			return 0, 0
		}
		if e.isClosed() {
			return -1, syscall.EBADF
		}
	}
}

func (e *epoll) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
