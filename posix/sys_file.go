package posix

import (
	"math"
	"syscall"

	"loam/fs"
)

// Calls that work on any descriptor: read, write, close, dup, fcntl, ioctl, stat.

// Read is read(2).
func (p *Process) Read(fd int, b []byte) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return o.Read(b)
}

// Read is read(2) from an open file.
func (o *open) Read(b []byte) (int, Errno) {
	n, errno := o.read(b)
	if errno == syscall.EAGAIN {
		n, errno = o.readLater(b)
	}
	if errno != 0 {
		return -1, errno
	}
	return n, 0
}

// readLater is read(2) where nothing was there: it waits, or in non-blocking mode says so.
func (o *open) readLater(b []byte) (int, Errno) {
	in, isStream := o.file.(*stream)
	if o.nonblocking() {
		if isStream {
			in.want(streamPiece) // the next piece in one, as who asks does not wait for each byte
		}
		return 0, syscall.EAGAIN
	}
	s := newSleeper(o.queue(), o.recvTimeout())
	defer s.leave()
	for {
		n, errno := o.read(b)
		if errno == syscall.EAGAIN && isStream {
			in.want(len(b))
		}
		if errno != syscall.EAGAIN || !s.sleep() {
			return n, errno
		}
	}
}

// Write is write(2). On a stream in blocking mode it returns when all is
// written.
func (p *Process) Write(fd int, b []byte) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return o.Write(b)
}

// Write is write(2) to an open file.
func (o *open) Write(b []byte) (int, Errno) {
	if o.sink != nil {
		n, err := o.sink.WriteAt(b, 0)
		return n, toErrno(err)
	}
	n, errno := o.write(b)
	if (errno == syscall.EAGAIN || errno == 0 && n < len(b)) && !o.nonblocking() {
		n, errno = o.writeWaiting(b, max(n, 0))
	}
	if errno != 0 {
		return -1, errno
	}
	return n, 0
}

// writeWaiting writes what is left of b behind done bytes. An error after some
// bytes have gone is left for the next call to find.
func (o *open) writeWaiting(b []byte, done int) (int, Errno) {
	s := newSleeper(o.queue(), o.sendTimeout())
	defer s.leave()
	for {
		n, errno := o.write(b[done:])
		if errno == 0 {
			if done += n; done == len(b) {
				return done, 0
			}
			continue
		}
		if errno == syscall.EAGAIN && s.sleep() {
			continue
		}
		if done > 0 {
			return done, 0
		}
		return -1, errno
	}
}

// Close is close(2).
func (p *Process) Close(fd int) Errno {
	if p.ranges.count.Load() > 0 {
		if _, f, errno := p.tree(fd, 0); errno == 0 && f != nil {
			p.ranges.release(f.Place().Node, held{owner: p, last: math.MaxInt64})
		}
	}
	return p.fds.remove(fd)
}

// CloseRange is close_range(2).
func (p *Process) CloseRange(first, last uint32, flags int) Errno {
	const unshare, cloexec = 2, 4
	if flags&^(unshare|cloexec) != 0 || first > last {
		return syscall.EINVAL
	}
	for _, fd := range p.fds.list() {
		switch {
		case fd < int(first) || fd > int(last):
		case flags&cloexec != 0:
			p.fds.setCloexec(fd, true)
		default:
			p.Close(fd)
		}
	}
	return 0
}

// Dup is dup(2).
func (p *Process) Dup(fd int) (int, Errno) { return p.dupAbove(fd, 0, false) }

func (p *Process) dupAbove(fd, from int, cloexec bool) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return p.fds.insert(o, from, cloexec)
}

// Dup3 is dup3(2), and dup2(2) when flags is 0, which allows fd == to.
func (p *Process) Dup3(fd, to, flags int, dup2 bool) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	switch {
	case flags&^syscall.O_CLOEXEC != 0:
		return -1, syscall.EINVAL
	case fd == to && !dup2:
		return -1, syscall.EINVAL
	case fd == to:
		return to, 0
	}
	if errno := p.fds.replace(o, to, flags&syscall.O_CLOEXEC != 0); errno != 0 {
		return -1, errno
	}
	return to, 0
}

// Fcntl is fcntl(2) but for locks, which are Lock's. Leases and signals
// (F_SETOWN, ...) are refused with EINVAL.
func (p *Process) Fcntl(fd, cmd, arg int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	switch cmd {
	case syscall.F_DUPFD, fDupFDCloexec:
		if arg < 0 {
			return -1, syscall.EINVAL
		}
		return p.dupAbove(fd, arg, cmd == fDupFDCloexec)
	case syscall.F_GETFD:
		if p.fds.cloexec(fd) {
			return syscall.FD_CLOEXEC, 0
		}
		return 0, 0
	case syscall.F_SETFD:
		p.fds.setCloexec(fd, arg&syscall.FD_CLOEXEC != 0)
		return 0, 0
	case syscall.F_GETFL:
		return int(o.flags.Load()), 0
	case syscall.F_SETFL:
		o.setFlags(arg)
		return 0, 0
	case fGetPipeSize, fSetPipeSize:
		if _, ok := o.file.(*pipeEnd); ok {
			return pipeSize, 0
		}
		return -1, syscall.EBADF
	case fAddSeals, fGetSeals:
		return o.seals(cmd, arg)
	}
	return -1, syscall.EINVAL
}

// Ioctl is ioctl(2) for requests whose argument is an int, which is passed and
// returned by value. Errors: ENOTTY.
func (p *Process) Ioctl(fd, request, arg int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return 0, errno
	}
	switch request {
	case fioNBIO:
		o.setNonblocking(arg != 0)
		return arg, 0
	case fioClex, fioNClex:
		p.fds.setCloexec(fd, request == fioClex)
		return arg, 0
	}
	if f, ok := o.file.(interface{ buffered() int }); ok && request == fioNRead {
		return f.buffered(), 0
	}
	switch f := o.file.(type) {
	case socket:
		if request == sioOutq {
			return f.unsent(), 0
		}
		if t, ok := f.(urgent); ok && request == sioAtMark {
			return t.atMark(), 0
		}
	case *treeFile:
		if a := f.Attr(); request == fioNRead && a.Mode.Type() == fs.Regular {
			at, err := f.Seek(0, fs.SeekCur)
			return int(max(a.Size-at, 0)), toErrno(err)
		}
	}
	return 0, syscall.ENOTTY
}

// TakesInt reports whether the argument of a request is the address of an int.
func TakesInt(request int) bool {
	switch request {
	case fioNBIO, fioNRead, sioOutq, sioAtMark:
		return true
	}
	return false
}

// Terminal is ioctl(2) for requests whose argument is no int: those of terminals
// (ioctl_tty(2)), which go to the stream. arg are the bytes at the caller's
// address. Errors: ENOTTY.
func (p *Process) Terminal(fd, request int, arg []byte) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	s, ok := o.file.(*stream)
	if !ok {
		return syscall.ENOTTY
	}
	return s.host.Ioctl(request, arg)
}
