package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/event"
	"loam/posix/file"
	"loam/posix/inet"
	"loam/posix/pipe"
)

// Calls on pipes: see posix/pipe.

// Pipe2 implements pipe2(2). It returns the read end and the write end, in this order. Errors: EINVAL,
// EMFILE, ENFILE.
func (p *Process) Pipe2(flags int) (fds [2]int, errno Errno) {
	if flags&^(linux.O_CLOEXEC|linux.O_NONBLOCK|linux.O_DIRECT) != 0 {
		return fds, linux.EINVAL
	}
	reader, writer, errno := p.pipes.New(uint64(p.serial.Next()), p.pipeCreator())
	if errno != 0 {
		return fds, errno
	}
	writer.SetFlags(fs.Flags(flags))
	cloexec := flags&linux.O_CLOEXEC != 0
	if fds[0], errno = p.installWith(reader, flags&linux.O_NONBLOCK|linux.O_RDONLY, cloexec); errno != 0 {
		writer.Close()
		return fds, errno
	}
	if fds[1], errno = p.installWith(writer, flags&^linux.O_CLOEXEC|linux.O_WRONLY, cloexec); errno != 0 {
		p.Close(fds[0])
	}
	return fds, errno
}

// pipeCreator describes the caller as the creator of a pipe.
func (p *Process) pipeCreator() pipe.Creator {
	resource := p.may(linux.CAP_SYS_RESOURCE)
	return pipe.Creator{UID: p.Identity().UID, Resource: resource, Unlimited: resource || p.may(linux.CAP_SYS_ADMIN)}
}

// openFIFO opens a FIFO. Errors: ENXIO, EINTR, EMFILE, EINVAL for O_DIRECT, which only F_SETFL can set.
func (p *Process) openFIFO(node fs.Node, flags int) (int, Errno) {
	if flags&linux.O_DIRECT != 0 {
		return -1, linux.EINVAL
	}
	e, errno := p.pipes.OpenFIFO(node, flags, p.pipeCreator(), p.Waiting())
	if errno != 0 {
		return -1, errno
	}
	return p.installWith(e, flags&statusFlags, flags&linux.O_CLOEXEC != 0)
}

// two returns the open file descriptions of the two descriptors of splice(2) or tee(2). Errors: EINVAL, EBADF.
func (p *Process) two(in, out, n, flags int) (from, to *file.Description, errno Errno) {
	if flags&^pipe.Flags != 0 || n < 0 {
		return nil, nil, linux.EINVAL
	}
	if from, errno = p.get(in); errno != 0 {
		return nil, nil, errno
	}
	if to, errno = p.get(out); errno == 0 && (!from.MayRead() || !to.MayWrite()) {
		errno = linux.EBADF
	}
	return from, to, errno
}

// Splice implements splice(2). An offset may be nil. Errors: EBADF, EINVAL, and those of pipe.System.Splice.
func (p *Process) Splice(in int, inOffset *int64, out int, outOffset *int64, n, flags int) (int, Errno) {
	from, to, errno := p.two(in, out, n, flags)
	if errno != 0 {
		return -1, errno
	}
	if _, isCounter := to.File.(*event.Counter); isCounter || cannotWrite(to) {
		return -1, linux.EINVAL
	}
	if errno := p.prepareWrite(to.File, n); errno != 0 {
		return -1, errno
	}
	put := func(b []byte) (int, Errno) { return inet.Begun(p.write(to, b)) }
	return p.pipes.Splice(pipe.Spliced{Description: from, Offset: inOffset}, pipe.Spliced{Description: to, Offset: outOffset, Put: put}, n, flags, p.Waiting())
}

// Tee implements tee(2). With a length of 0, as on Linux, only the flags are checked. Errors: EBADF, EINVAL, EAGAIN, EINTR.
func (p *Process) Tee(in, out, n, flags int) (int, Errno) {
	if n == 0 && flags&^pipe.Flags == 0 {
		return 0, 0
	}
	from, to, errno := p.two(in, out, n, flags)
	if errno != 0 {
		return -1, errno
	}
	return p.pipes.Tee(from, to, n, flags, p.Waiting())
}

// PipeWrites reports whether fd is the write end of a pipe, for vmsplice(2). Errors: EBADF for another file, EINVAL.
func (p *Process) PipeWrites(fd, flags int) (bool, Errno) {
	o, errno := p.get(fd)
	if flags&^pipe.Flags != 0 {
		return false, linux.EINVAL
	}
	if errno != 0 {
		return false, errno
	}
	e, ok := o.File.(*pipe.End)
	if !ok {
		return false, linux.EBADF
	}
	return e.Writes(), 0
}

// WriteNow implements vmsplice(2) for the write end of a pipe: see pipe.End.Insert. Errors: EBADF, EPIPE, EAGAIN, EINTR.
func (p *Process) WriteNow(fd int, b []byte, flags int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	e, isPipe := o.File.(*pipe.End)
	if !isPipe {
		return -1, linux.EBADF
	}
	return e.Insert(b, flags, p.Waiting())
}

// ReadNow implements read(2), but does not wait if flags has SPLICE_F_NONBLOCK.
func (p *Process) ReadNow(fd int, b []byte, flags int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	if flags&pipe.Nonblock == 0 {
		return p.ReadOpened(o, b)
	}
	return o.Read(b)
}
