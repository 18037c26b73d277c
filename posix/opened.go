package posix

import (
	"loam/abi/linux"
	"loam/posix/epoll"
	"loam/posix/event"
	"loam/posix/file"
	"loam/posix/mqueue"
	"loam/posix/timer"
)

// Opened is an open file description. It lets the most frequent calls look the descriptor up only once.
// If the description is closed meanwhile, a call behaves as if it had come before the close, or returns
// an error.
type Opened = file.Description

// Opened returns the description of fd, or nil. It takes no lock.
func (p *Process) Opened(fd int) *Opened { return p.fds.Get(fd) }

// MayRead checks the descriptor of a vector without bytes, for which readv(2) does not read the file. MayWrite does the same
// for writev(2). Errors: EBADF; EINVAL for a file that cannot be read or written.
func (p *Process) MayRead(fd int) Errno {
	o, errno := p.get(fd)
	if errno != 0 || !o.MayRead() {
		return linux.EBADF
	}
	switch o.File.(type) {
	case *epoll.Set, *event.Process, *pidFD:
		return linux.EINVAL
	}
	return 0
}

func (p *Process) MayWrite(fd int) Errno {
	o, errno := p.get(fd)
	if errno != 0 || !o.MayWrite() {
		return linux.EBADF
	}
	if cannotWrite(o) {
		return linux.EINVAL
	}
	return 0
}

// cannotWrite reports whether write(2) fails with EINVAL because of the type of the file.
func cannotWrite(o *Opened) bool {
	switch o.File.(type) {
	case *epoll.Set, *timer.File, *event.Signals, *event.Process, *pidFD, *mqueue.File:
		return true
	}
	return false
}
