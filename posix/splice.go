package posix

import (
	"loam/abi/linux"
	"loam/posix/file"
)

// splice(2), tee(2) and vmsplice(2). Bytes are copied between the ring of a pipe and the other file, without a buffer
// in between. The lock of the pipe is held meanwhile, so that no byte is lost and none is read twice if the other file
// takes only a part. No other file takes the lock of a pipe. A call that locks two pipes holds System.pairs.

// Flags of these calls. SPLICE_F_MOVE, SPLICE_F_MORE and SPLICE_F_GIFT have no effect.
const (
	spliceNonblock = 2
	spliceKnown    = 15
)

// pipeOf returns the pipe of a descriptor, and the description; nil for another file. Errors: EBADF.
func (p *Process) pipeOf(fd int) (*file.Description, *pipeEnd, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, nil, errno
	}
	e, _ := o.File.(*pipeEnd)
	return o, e, 0
}

// Splice implements splice(2). An offset may be nil. It blocks until a byte has been moved, or returns 0 at the end of the
// input. Errors: EBADF, EINVAL, ESPIPE, EAGAIN, EPIPE, EINTR, and those of reading and writing the files.
func (p *Process) Splice(in int, inOffset *int64, out int, outOffset *int64, n, flags int) (int, Errno) {
	if flags&^spliceKnown != 0 || n < 0 {
		return -1, linux.EINVAL
	}
	from, reader, errno := p.pipeOf(in)
	if errno != 0 {
		return -1, errno
	}
	to, writer, errno := p.pipeOf(out)
	switch {
	case errno != 0:
		return -1, errno
	case reader != nil && inOffset != nil, writer != nil && outOffset != nil:
		return -1, linux.ESPIPE
	case reader == nil && writer == nil, reader != nil && writer != nil && reader.pipe == writer.pipe:
		return -1, linux.EINVAL
	case !mayRead(from) || !mayWrite(to):
		return -1, linux.EBADF
	case n == 0:
		return 0, 0
	}
	source, sink := spliced{from, inOffset}, spliced{to, outOffset}
	move := func() (int, Errno) { return reader.drainInto(sink, n) }
	switch {
	case reader != nil && writer != nil:
		move = func() (int, Errno) { return p.between(reader.pipe, writer.pipe, n, true) }
	case writer != nil:
		move = func() (int, Errno) { return writer.fillFrom(source, n) }
	}
	return p.moveLater(from, to, flags, move)
}

// Tee implements tee(2). Errors: EBADF, EINVAL, EAGAIN, EINTR.
func (p *Process) Tee(in, out, n, flags int) (int, Errno) {
	if flags&^spliceKnown != 0 || n < 0 {
		return -1, linux.EINVAL
	}
	from, reader, errno := p.pipeOf(in)
	if errno != 0 {
		return -1, errno
	}
	to, writer, errno := p.pipeOf(out)
	switch {
	case errno != 0:
		return -1, errno
	case reader == nil || writer == nil || reader.pipe == writer.pipe:
		return -1, linux.EINVAL
	case !reader.does[reads] || !writer.does[writes]:
		return -1, linux.EBADF
	case n == 0:
		return 0, 0
	}
	return p.moveLater(from, to, flags, func() (int, Errno) { return p.between(reader.pipe, writer.pipe, n, false) })
}

// PipeWrites reports for vmsplice(2) whether fd is the end of a pipe that is written to. Errors: EBADF for another
// file, EINVAL.
func (p *Process) PipeWrites(fd, flags int) (bool, Errno) {
	_, e, errno := p.pipeOf(fd)
	switch {
	case flags&^spliceKnown != 0:
		return false, linux.EINVAL
	case errno != 0 || e == nil:
		return false, linux.EBADF
	}
	return e.does[writes], 0
}

// WriteNow is Write that does not wait if flags has SPLICE_F_NONBLOCK.
func (p *Process) WriteNow(fd int, b []byte, flags int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	if flags&spliceNonblock == 0 {
		return p.WriteOpened(o, b)
	}
	return o.Write(b)
}

// ReadNow is Read that does not wait if flags has SPLICE_F_NONBLOCK.
func (p *Process) ReadNow(fd int, b []byte, flags int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	if flags&spliceNonblock == 0 {
		return p.ReadOpened(o, b)
	}
	return o.Read(b)
}

func mayRead(o *file.Description) bool  { return o.Flags.Load()&linux.O_ACCMODE != linux.O_WRONLY }
func mayWrite(o *file.Description) bool { return o.Flags.Load()&linux.O_ACCMODE != linux.O_RDONLY }

// moveLater calls move until its error is not EAGAIN. In between it waits for both files, unless one of
// them is a pipe or socket in non-blocking mode or flags has SPLICE_F_NONBLOCK.
func (p *Process) moveLater(from, to *file.Description, flags int, move func() (int, Errno)) (int, Errno) {
	n, errno := move()
	if errno == linux.EAGAIN && flags&spliceNonblock == 0 && !from.Nonblocking() && !to.Nonblocking() {
		n, errno = p.moveWhenReady(from, to, move)
	}
	if errno != 0 {
		return -1, errno
	}
	return n, 0
}

func (p *Process) moveWhenReady(from, to *file.Description, move func() (int, Errno)) (int, Errno) {
	s := p.newSleeper(from.Queue(), 0)
	defer s.Leave()
	s.Also(to.Queue())
	defer s.NotAlso(to.Queue())
	for {
		from.Events() // it has the file report what happens from now on
		to.Events()
		if n, errno := move(); errno != linux.EAGAIN {
			return n, errno
		}
		if errno := s.Sleep(); errno != 0 {
			return 0, errno
		}
	}
}

// spliced is the file beside a pipe, with the offset of the call, or nil.
type spliced struct {
	*file.Description
	offset *int64
}

// take reads from the file. Errors: EINVAL for an offset of a file that has none.
func (s spliced) take(b []byte) (int, Errno) {
	if s.offset == nil {
		return s.Read(b)
	}
	n, errno := s.ReadAt(b, *s.offset)
	if errno == linux.ESPIPE || *s.offset < 0 {
		return 0, linux.EINVAL
	}
	if errno == 0 {
		*s.offset += int64(n)
	}
	return n, errno
}

// give writes to the file. Errors: EINVAL for a file that only appends, or for an offset of a file that has none.
func (s spliced) give(b []byte) (int, Errno) {
	if s.Flags.Load()&linux.O_APPEND != 0 {
		return 0, linux.EINVAL
	}
	if s.offset == nil {
		return s.Write(b)
	}
	n, errno := s.WriteAt(b, *s.offset)
	if errno == linux.ESPIPE || *s.offset < 0 {
		return 0, linux.EINVAL
	}
	if errno == 0 {
		*s.offset += int64(n)
	}
	return n, errno
}

// drainInto moves up to n bytes from the pipe to a file, as far as both allow it now.
func (e *pipeEnd) drainInto(to spliced, n int) (int, Errno) {
	p := e.pipe
	p.mu.Lock()
	done, errno := 0, Errno(0)
	for done < n && p.held > 0 {
		var got int
		if got, errno = to.give(p.front(n - done)); errno != 0 || got == 0 {
			break
		}
		p.consume(got)
		done += got
	}
	ended := p.held == 0 && p.ends[writes] == 0
	p.mu.Unlock()
	switch {
	case done > 0:
		p.notify(writes, PollOut)
		return done, 0
	case errno != 0:
		return 0, errno
	case ended:
		return 0, 0
	}
	return 0, linux.EAGAIN
}

// fillFrom moves up to n bytes from a file to the pipe, as far as both allow it now.
func (e *pipeEnd) fillFrom(from spliced, n int) (int, Errno) {
	p := e.pipe
	p.mu.Lock()
	done, errno, ended := 0, Errno(0), false
	for done < n && errno == 0 && !ended && p.ends[reads] > 0 && p.held < pipeSize {
		var got int
		got, errno = from.take(p.back(n - done))
		ended = errno == 0 && got == 0
		p.held += got
		done += got
	}
	widowed := p.ends[reads] == 0
	p.mu.Unlock()
	switch {
	case done > 0:
		p.notify(reads, PollIn)
		return done, 0
	case widowed:
		return 0, linux.EPIPE
	case errno != 0:
		return 0, errno
	case ended:
		return 0, 0
	}
	return 0, linux.EAGAIN
}

// between copies up to n bytes from a pipe to another. With consume, they leave the first.
func (s *System) between(from, to *pipe, n int, consume bool) (int, Errno) {
	n, errno := s.copyBetween(from, to, n, consume)
	if n > 0 {
		from.notify(writes, PollOut)
		to.notify(reads, PollIn)
	}
	return n, errno
}

// copyBetween is between without notifying the ends.
func (s *System) copyBetween(from, to *pipe, n int, consume bool) (int, Errno) {
	s.pairs.Lock()
	defer s.pairs.Unlock()
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	switch {
	case to.ends[reads] == 0:
		return 0, linux.EPIPE
	case from.held == 0 && from.ends[writes] == 0:
		return 0, 0
	}
	n = min(n, from.held, pipeSize-to.held)
	if n == 0 {
		return 0, linux.EAGAIN
	}
	for done := 0; done < n; {
		at := (from.start + done) % pipeSize
		got := copy(to.back(n-done), from.ring[at:])
		to.held += got
		done += got
	}
	if consume {
		from.consume(n)
	}
	return n, 0
}

// front returns up to n bytes of the content, as far as they are contiguous. The caller holds mu.
func (p *pipe) front(n int) []byte {
	return p.ring[p.start:min(pipeSize, p.start+min(n, p.held))]
}

// back returns up to n bytes of room behind the content, as far as they are contiguous. The caller holds mu, and adds what
// it has stored to held.
func (p *pipe) back(n int) []byte {
	if p.ring == nil {
		p.ring = make([]byte, pipeSize)
	}
	at := (p.start + p.held) % pipeSize
	return p.ring[at:min(pipeSize, at+min(n, pipeSize-p.held))]
}

// consume removes bytes from the front. The caller holds mu.
func (p *pipe) consume(n int) {
	p.start = (p.start + n) % pipeSize
	p.held -= n
}
