package posix

import (
	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/posix/tty"
)

// SIGIO and SIGURG: signals that report events of a file to the owner that a program has set (fcntl(2), F_SETOWN).

// FileSignals sends signals about files. task.Groups implements it for Linux programs.
type FileSignals interface {
	// SignalOwner sends a signal to the owner of a file: SIGIO, or the signal set with F_SETSIG, with si_code, si_band and
	// si_fd. It does not wait for a lock.
	SignalOwner(to file.Owner, signal int, code int32, band uint64, fd int)
	// HasOwner reports whether a thread, process or process group exists.
	HasOwner(kind, id int32) bool
	// Watched returns the process with an ID, or nil.
	Watched(pid int32) Watched
}

// Values of si_code in signals about files, and the poll events that si_band reports for each (sigaction(2)).
const (
	codeIn       = 1
	codeOut      = 2
	codeError    = 4
	codePriority = 5
	codeHangup   = 6

	bandIn       = 0x0041
	bandOut      = 0x0304
	bandError    = 0x0008
	bandPriority = 0x0082
	bandHangup   = 0x0018
)

// reportFile returns the function that sends SIGIO and SIGURG for an open file description.
func (p *Process) reportFile(o *file.Description) func(file.Owner, int, file.Events) {
	to, ok := p.terminals.Signals().(FileSignals)
	if !ok {
		return func(file.Owner, int, file.Events) {}
	}
	_, isSocket := o.File.(socket.Socket)
	_, isTerminal := o.File.(*tty.Slave)
	return func(w file.Owner, fd int, e file.Events) {
		if isTerminal {
			if e&PollHup != 0 {
				return
			}
			e &= PollIn
		}
		send := func(code int32, band uint64) {
			n := int(w.Signal)
			if n == 0 {
				n = linux.SIGIO
			}
			to.SignalOwner(w, n, code, band, fd)
		}
		asked := o.Flags.Load()&linux.O_ASYNC != 0
		if isSocket && e == PollPri { // stack.TCPConn reports urgent data as an event of its own, without PollIn
			plain := w
			plain.Signal = 0
			to.SignalOwner(plain, linux.SIGURG, 0, 0, 0)
			if asked {
				send(codePriority, bandPriority)
			}
		}
		if !asked {
			return
		}
		if isSocket && e&PollHup != 0 {
			e &= PollHup
		}
		if e&PollIn != 0 {
			send(codeIn, bandIn)
		}
		if e&PollOut != 0 {
			send(codeOut, bandOut)
		}
		switch {
		case e&(PollIn|PollOut) != 0:
		case e&PollHup != 0:
			send(codeHangup, bandHangup)
		case e&PollErr != 0:
			send(codeError, bandError)
		}
	}
}

// setOwner implements F_SETOWN and F_SETOWN_EX. Errors: ESRCH.
func (p *Process) setOwner(o *file.Description, kind, id int32) Errno {
	s, ok := p.terminals.Signals().(FileSignals)
	if id != 0 && (ok && !s.HasOwner(kind, id) || !ok && kind == linux.F_OWNER_PID && id != p.credentials.PID) {
		return linux.ESRCH
	}
	who := p.Identity()
	o.SetOwner(file.Owner{Kind: kind, ID: id, UID: who.UID, EUID: who.EUID, Signal: o.GetOwner().Signal}, p.reportFile(o))
	return 0
}

// owner implements the fcntl(2) commands F_GETOWN, F_SETOWN and others whose argument is an int. ok is false for a command
// that is not about owners. Errors: EINVAL, ESRCH.
func (p *Process) owner(o *file.Description, cmd, arg int) (n int, errno Errno, ok bool) {
	const last = 64
	w := o.GetOwner()
	switch cmd {
	case linux.F_SETOWN:
		return 0, p.setOwnerID(o, arg), true
	case linux.F_GETOWN:
		return p.ownerID(o), 0, true
	case linux.F_SETSIG:
		if arg < 0 || arg > last {
			return -1, linux.EINVAL, true
		}
		w.Signal = int32(arg)
		o.SetOwner(w, p.reportFile(o))
		return 0, 0, true
	case linux.F_GETSIG:
		return int(w.Signal), 0, true
	}
	return 0, 0, false
}

// setOwnerID sets an owner by its ID, which is negative for a process group. Errors: EINVAL, ESRCH.
func (p *Process) setOwnerID(o *file.Description, arg int) Errno {
	id, kind := int32(arg), int32(linux.F_OWNER_PID)
	if id < 0 {
		if id == -1<<31 {
			return linux.EINVAL
		}
		id, kind = -id, linux.F_OWNER_PGRP
	}
	return p.setOwner(o, kind, id)
}

// ownerID returns the ID of an owner, negative for a process group; 0 if it has ended.
func (p *Process) ownerID(o *file.Description) int {
	w := o.GetOwner()
	if s, ok := p.terminals.Signals().(FileSignals); ok && w.ID != 0 && !s.HasOwner(w.Kind, w.ID) {
		return 0
	}
	if w.Kind == linux.F_OWNER_PGRP {
		return -int(w.ID)
	}
	return int(w.ID)
}

// SetOwnerEx implements F_SETOWN_EX. Errors: EBADF, EINVAL, ESRCH.
func (p *Process) SetOwnerEx(fd int, kind, id int32) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if kind < linux.F_OWNER_TID || kind > linux.F_OWNER_PGRP {
		return linux.EINVAL
	}
	if id < 0 {
		return linux.ESRCH
	}
	return p.setOwner(o, kind, id)
}

// GetOwnerEx implements F_GETOWN_EX. Errors: EBADF.
func (p *Process) GetOwnerEx(fd int) (kind, id int32, errno Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return 0, 0, errno
	}
	n := p.ownerID(o)
	return o.GetOwner().Kind, int32(max(n, -n)), 0
}

// setAsync implements O_ASYNC for a descriptor. For a terminal without an owner, it makes the foreground process group the
// owner, or the calling process if there is no such group. Errors: ENOTTY.
func (p *Process) setAsync(o *file.Description, fd int, on bool) Errno {
	if s, ok := o.File.(*tty.Slave); ok && on && o.GetOwner().ID == 0 {
		if group := s.Foreground(); group != 0 {
			p.setOwner(o, linux.F_OWNER_PGRP, group)
		} else {
			p.setOwner(o, linux.F_OWNER_PID, p.credentials.PID)
		}
	}
	return o.SetAsync(on, fd, p.reportFile(o))
}

// ownerRequest implements FIOSETOWN, SIOCSPGRP, FIOGETOWN and SIOCGPGRP on sockets. Errors: ENOTTY, EINVAL, ESRCH.
func (p *Process) ownerRequest(o *file.Description, request, arg int) (int, Errno) {
	if _, ok := o.File.(socket.Socket); !ok {
		return 0, linux.ENOTTY
	}
	if request == linux.FIOSETOWN || request == linux.SIOCSPGRP {
		return arg, p.setOwnerID(o, arg)
	}
	return p.ownerID(o), 0
}
