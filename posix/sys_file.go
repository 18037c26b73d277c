package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/event"
	"loam/posix/file"
	"loam/posix/inet"
	"loam/posix/lock"
	"loam/posix/mqueue"
	"loam/posix/pipe"
	"loam/posix/socket"
	"loam/posix/tty"
	"loam/posix/unix"
)

// Calls that work on any descriptor: read, write, close, dup, fcntl, ioctl, stat.

// Read implements read(2). On a blocking descriptor it blocks the calling goroutine until data is available.
func (p *Process) Read(fd int, b []byte) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return p.ReadOpened(o, b)
}

// ReadOpened implements read(2) for an open file.
func (p *Process) ReadOpened(o *Opened, b []byte) (int, Errno) {
	if s := o.Source(); s != nil {
		n, err := s.ReadAt(b, 0)
		return n, file.ToErrno(err)
	}
	if len(b) == 0 {
		if _, ok := o.File.(socket.Socket); ok {
			return 0, 0 // unlike recv(2), read(2) of no bytes takes no message
		}
	}
	switch f := o.File.(type) { // reads of these files depend on the calling thread
	case *tty.Slave:
		return f.ReadFor(caller{p}, b, o.Nonblocking())
	case *event.Signals:
		return p.readSignals(o, f, b)
	}
	n, errno := o.Read(b)
	if errno == linux.EAGAIN {
		n, errno = p.readLater(o, b)
	}
	if errno != 0 {
		return -1, errno
	}
	return n, 0
}

// readLater handles a read that found no data. It waits, or returns EAGAIN in non-blocking mode.
func (p *Process) readLater(o *file.Description, b []byte) (int, Errno) {
	in, isStream := o.File.(*stream)
	if o.Nonblocking() {
		if isStream {
			in.want(streamPiece) // a whole piece is read ahead, because a program that polls usually reads more than a byte
		}
		return 0, linux.EAGAIN
	}
	s := p.newSleeper(o.Queue(), socket.RecvTimeout(o.File))
	defer s.Leave()
	for {
		n, errno := o.Read(b)
		if errno == linux.EAGAIN && isStream {
			in.want(len(b))
		}
		if errno != linux.EAGAIN {
			return n, errno
		}
		if errno = s.Sleep(); errno != 0 {
			return 0, errno
		}
	}
}

// Write implements write(2). On a blocking stream it returns when all of b has been written, or after
// an error. It raises no SIGPIPE.
func (p *Process) Write(fd int, b []byte) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return p.WriteOpened(o, b)
}

// WriteOpened implements write(2) for an open file.
func (p *Process) WriteOpened(o *Opened, b []byte) (int, Errno) {
	if o.Sink() != nil {
		n, err := o.Sink().WriteAt(b, 0)
		return n, file.ToErrno(err)
	}
	if t, ok := o.File.(*tty.Slave); ok {
		if errno := t.MayWrite(caller{p}); errno != 0 {
			return -1, errno
		}
	}
	b, errno := p.bounded(o, b, current)
	if errno != 0 {
		return -1, errno
	}
	if errno := p.prepareWrite(o.File, len(b)); errno != 0 {
		return -1, errno
	}
	n, errno := p.write(o, b)
	if errno == linux.EINPROGRESS && !o.Nonblocking() {
		errno = p.begun(o.File)
	}
	_, inTree := o.File.(*treeFile) // its writes do not wait, and may be short: settings in /proc/sys
	if (errno == linux.EAGAIN || errno == 0 && n < len(b)) && !inTree && !o.Nonblocking() {
		n, errno = p.writeWaiting(o.File, b, max(n, 0), func(b []byte) (int, Errno) { return p.write(o, b) })
	}
	if n, errno = inet.Begun(n, errno); errno != 0 {
		return -1, errno
	}
	return n, 0
}

// write writes to a file once. A Unix socket gets the credentials of the caller, who need not be the creator of the socket.
func (p *Process) write(o *file.Description, b []byte) (int, Errno) {
	if s, ok := o.File.(*unix.Socket); ok {
		return s.Send(b, Outgoing{Sender: p.sender()})
	}
	return o.Write(b)
}

// writeWaiting writes b from offset done on with the function write, and waits for room. An error after some bytes is left to
// the next call.
func (p *Process) writeWaiting(f file.File, b []byte, done int, write func([]byte) (int, Errno)) (int, Errno) {
	s := p.newSleeper(f.Queue(), socket.SendTimeout(f))
	defer s.Leave()
	for {
		n, errno := write(b[done:])
		if errno == 0 {
			if done += n; done >= len(b) {
				return done, 0
			}
			continue
		}
		if errno == linux.EAGAIN {
			if errno = s.Sleep(); errno == 0 {
				continue
			}
		}
		if done > 0 {
			return done, 0
		}
		return -1, errno
	}
}

// Close implements close(2). It also releases the process's record locks on the file (fcntl(2)), unless the descriptor was
// opened with O_PATH. Errors: EBADF.
func (p *Process) Close(fd int) Errno {
	if p.locks.Ranges.Len() > 0 {
		if f, errno := p.real(fd, 0); errno == 0 && f != nil {
			p.locks.Ranges.Release(f.Place().Node, lock.Whole(p.own, false))
		}
	}
	if o := p.fds.Get(fd); o != nil {
		if f, ok := o.File.(*mqueue.File); ok {
			f.Forget(p.credentials.PID)
		}
	}
	return p.fds.Remove(fd)
}

// CloseRange implements close_range(2). CLOSE_RANGE_UNSHARE is ignored; package task implements it. Errors: EINVAL.
func (p *Process) CloseRange(first, last uint32, flags int) Errno {
	const unshare, cloexec = 2, 4
	if flags&^(unshare|cloexec) != 0 || first > last {
		return linux.EINVAL
	}
	for _, fd := range p.fds.List() {
		switch {
		case fd < int(first) || fd > int(last):
		case flags&cloexec != 0:
			p.fds.SetCloexec(fd, true)
		default:
			p.Close(fd)
		}
	}
	return 0
}

// Dup implements dup(2). Errors: EBADF, EMFILE.
func (p *Process) Dup(fd int) (int, Errno) { return p.dupAbove(fd, 0, false) }

func (p *Process) dupAbove(fd, from int, cloexec bool) (int, Errno) {
	o, errno := p.getAny(fd)
	if errno != 0 {
		return -1, errno
	}
	return p.fds.Insert(o, from, p.MostFiles(), cloexec)
}

// Dup3 implements dup3(2). With dup2 it implements dup2(2), which allows fd == to. Errors: EBADF,
// EINVAL.
func (p *Process) Dup3(fd, to, flags int, dup2 bool) (int, Errno) {
	if flags&^linux.O_CLOEXEC != 0 || fd == to && !dup2 {
		return -1, linux.EINVAL
	}
	o, errno := p.getAny(fd)
	switch {
	case errno != 0:
		return -1, errno
	case fd == to:
		return to, 0
	case to >= p.MostFiles():
		return -1, linux.EBADF
	}
	if errno := p.fds.Replace(o, to, flags&linux.O_CLOEXEC != 0); errno != 0 {
		return -1, errno
	}
	return to, 0
}

// Fcntl implements fcntl(2) except for locks: see Lock. For a descriptor opened with O_PATH, only
// commands about the descriptor and F_GETFL are allowed: other commands return EBADF.
func (p *Process) Fcntl(fd, cmd, arg int) (int, Errno) {
	o, errno := p.getAny(fd)
	if errno != 0 {
		return -1, errno
	}
	switch cmd {
	case linux.F_DUPFD, linux.F_DUPFD_CLOEXEC:
		if arg < 0 || arg >= p.MostFiles() {
			return -1, linux.EINVAL
		}
		return p.dupAbove(fd, arg, cmd == linux.F_DUPFD_CLOEXEC)
	case linux.F_GETFD:
		if p.fds.Cloexec(fd) {
			return linux.FD_CLOEXEC, 0
		}
		return 0, 0
	case linux.F_SETFD:
		p.fds.SetCloexec(fd, arg&linux.FD_CLOEXEC != 0)
		return 0, 0
	case linux.F_GETFL:
		return int(o.Flags.Load()), 0
	}
	if o.PathOnly() {
		return -1, linux.EBADF
	}
	return p.fileControl(o, fd, cmd, arg)
}

// fileControl implements the commands of fcntl(2) that need more than a descriptor opened with O_PATH.
func (p *Process) fileControl(o *file.Description, fd, cmd, arg int) (int, Errno) {
	switch cmd {
	case linux.F_SETFL:
		if errno := p.maySetFlags(o, arg); errno != 0 {
			return -1, errno
		}
		if (arg^int(o.Flags.Load()))&linux.O_ASYNC != 0 {
			p.setAsync(o, fd, arg&linux.O_ASYNC != 0) // for a file that sends no SIGIO, O_ASYNC is only stored
		}
		o.SetFlags(arg)
		return 0, 0
	case linux.F_GETPIPE_SZ, linux.F_SETPIPE_SZ:
		e, ok := o.File.(*pipe.End)
		switch {
		case !ok:
			return -1, linux.EBADF
		case cmd == linux.F_SETPIPE_SZ:
			return e.Resize(arg, p.pipeCreator())
		}
		return e.Capacity(), 0
	case linux.F_SETLEASE, linux.F_GETLEASE:
		return p.lease(o, fd, cmd, arg)
	case linux.F_NOTIFY:
		return p.unnotify(o, arg)
	case linux.F_ADD_SEALS, linux.F_GET_SEALS:
		return seals(o, cmd, arg)
	}
	if n, errno, ok := p.owner(o, cmd, arg); ok {
		return n, errno
	}
	return -1, linux.EINVAL
}

// maySetFlags checks F_SETFL. Errors: EPERM for O_NOATIME if the caller does not own the file, unless the flag is set already;
// EINVAL for O_DIRECT.
func (p *Process) maySetFlags(o *file.Description, flags int) Errno {
	if f, ok := o.File.(*treeFile); ok && flags&^int(o.Flags.Load())&linux.O_NOATIME != 0 && !p.sight().Who.Owns(f.Attr()) {
		return linux.EPERM
	}
	if flags&linux.O_DIRECT == 0 {
		return 0
	}
	switch o.File.Mode() & linux.S_IFMT {
	case linux.S_IFREG, linux.S_IFBLK:
		p.direct.Store(true)
	case linux.S_IFIFO:
	default:
		return linux.EINVAL
	}
	return 0
}

// CheckMemory checks an address of the caller's memory for a read or write of fd with O_DIRECT, at an offset or at fs.Current. Errors: EINVAL.
func (p *Process) CheckMemory(fd int, address uint64, offset int64, write bool) Errno {
	if p.direct.Load() && p.fds.Get(fd).Misaligned(address, offset, write) {
		return linux.EINVAL
	}
	return 0
}

// Direct reports whether the process has opened a file with O_DIRECT.
func (p *Process) Direct() bool { return p.direct.Load() }

// InPlace returns the file of o if a device may access n bytes of the caller's memory itself, or nil: see file.InPlace.
func (p *Process) InPlace(o *Opened, address uint64, n int, write bool) (f file.InPlace) {
	if !p.Direct() || n <= 0 || write && p.LimitsFileSize() {
		return nil
	}
	if f = o.InPlace(address); f != nil && write {
		p.prepareWrite(o.File, n)
	}
	return f
}

// unnotify implements F_NOTIFY (dnotify). Without events, the call succeeds: it would remove a notification, and there are
// none. Requests for events fail. Errors: ENOTDIR, EINVAL.
func (p *Process) unnotify(o *file.Description, events int) (int, Errno) {
	switch {
	case uint32(events)&^linux.DN_MULTISHOT == 0:
		return 0, 0
	case o.File.Mode()&linux.S_IFMT != linux.S_IFDIR:
		return -1, linux.ENOTDIR
	}
	return -1, linux.EINVAL
}

// Ioctl implements ioctl(2) for requests with an int argument, which is passed and returned by value. Errors: EBADF, ENOTTY.
func (p *Process) Ioctl(fd, request, arg int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return 0, errno
	}
	switch request {
	case linux.FIONBIO:
		o.SetNonblocking(arg != 0)
		return arg, 0
	case linux.FIOASYNC:
		return arg, p.setAsync(o, fd, arg != 0)
	case linux.FIOSETOWN, linux.SIOCSPGRP, linux.FIOGETOWN, linux.SIOCGPGRP:
		return p.ownerRequest(o, request, arg)
	case linux.FIOCLEX, linux.FIONCLEX:
		p.fds.SetCloexec(fd, request == linux.FIOCLEX)
		return arg, 0
	}
	if f, ok := o.File.(interface{ Buffered() int }); ok && request == linux.FIONREAD {
		return f.Buffered(), 0
	}
	switch f := o.File.(type) {
	case tty.End:
		if request == linux.TIOCOUTQ {
			return 0, 0 // TIOCOUTQ of a pseudo-terminal is 0: the master has all output at once
		}
	case socket.Socket:
		if request == linux.SIOCOUTQ {
			return f.Unsent(), 0
		}
		if t, ok := f.(socket.Marked); ok && request == linux.SIOCATMARK {
			return t.AtMark()
		}
	case *treeFile:
		if r, ok := f.Handle().(interface{ Entropy() int }); ok && request == linux.RNDGETENTCNT {
			return r.Entropy(), 0
		}
		if a := f.Attr(); request == linux.FIONREAD && a.Mode.Type() == fs.Regular {
			at, err := f.Seek(0, fs.SeekCur)
			return int(max(a.Size-at, 0)), file.ToErrno(err)
		}
	}
	return 0, linux.ENOTTY
}

// prepareWrite is called before n bytes are written to a file. Errors: EPERM and EBADF if the file checks its writer at each write.
func (p *Process) prepareWrite(o file.File, n int) Errno {
	f, ok := o.(*treeFile)
	if !ok {
		return 0
	}
	if n > 0 {
		p.clearSetIDs(f)
	}
	return file.ToErrno(f.MayWriteAs(&p.sight().Who))
}

// clearSetIDs removes the set-user-ID and set-group-ID bits that a write removes (write(2), inode(7)). A caller with
// CAP_FSETID keeps the bits. Package fs removes file capabilities.
func (p *Process) clearSetIDs(f *treeFile) {
	if !p.may(linux.CAP_FSETID) && f.Flags().MayWrite() {
		f.ClearSetIDs(&p.sight().Who)
	}
}
