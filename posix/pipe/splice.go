package pipe

import (
	"loam/abi/linux"
	"loam/posix/file"
)

// splice(2) and tee(2). Bytes are copied between the ring of a pipe and the other file, without a buffer
// in between. The lock of the pipe is held meanwhile, so that no byte is lost and none is read twice if the other file
// takes only a part. No other file takes the lock of a pipe. A call that locks two pipes holds System.pairs.

// Flags of these calls. SPLICE_F_MOVE, SPLICE_F_MORE and SPLICE_F_GIFT have no effect.
const (
	Nonblock = 2  // SPLICE_F_NONBLOCK
	Flags    = 15 // all known flags
)

// Spliced is one of the two files of a call, with the offset argument for it (nil if the program passes none).
type Spliced struct {
	*file.Description
	Offset *int64
	Put    func(b []byte) (int, linux.Errno) // writes to the file without an offset; nil: Description.Write
}

// end returns the file as the end of a pipe, or nil if it is not a pipe.
func (s Spliced) end() *End {
	e, _ := s.File.(*End)
	return e
}

// Splice implements splice(2) for files whose descriptors are open, and flags that are known. It blocks until a byte has been
// moved, or returns 0 at the end of the input. With n = 0, it waits until a pipe as output has room, as sendfile(2) does. Errors: EBADF, EINVAL, ESPIPE, EAGAIN, EPIPE, EINTR, and those of reading and
// writing the files.
func (s *System) Splice(from, to Spliced, n, flags int, task file.Task) (int, linux.Errno) {
	reader, writer := from.end(), to.end()
	switch {
	case reader != nil && from.Offset != nil, writer != nil && to.Offset != nil:
		return -1, linux.ESPIPE
	case reader == nil && writer == nil, reader != nil && writer != nil && reader.pipe == writer.pipe:
		return -1, linux.EINVAL
	case !from.Description.MayRead() || !to.Description.MayWrite():
		return -1, linux.EBADF
	case writer == nil && to.Flags.Load()&linux.O_APPEND != 0:
		return -1, linux.EINVAL
	}
	move := func() (int, linux.Errno) { return reader.drainInto(to, n) }
	switch {
	case reader != nil && writer != nil:
		move = func() (int, linux.Errno) { return s.between(reader.pipe, writer.pipe, n, true) }
	case writer != nil:
		move = func() (int, linux.Errno) { return writer.fillFrom(from, n) }
	}
	return moveLater(from.Description, to.Description, flags, task, move)
}

// Tee implements tee(2) for files whose descriptors are open, flags that are known, and n > 0. Errors: EBADF, EINVAL, EAGAIN,
// EINTR.
func (s *System) Tee(from, to *file.Description, n, flags int, task file.Task) (int, linux.Errno) {
	reader, writer := Spliced{Description: from}.end(), Spliced{Description: to}.end()
	switch {
	case reader == nil || writer == nil || reader.pipe == writer.pipe:
		return -1, linux.EINVAL
	case !reader.does[reads] || !writer.does[writes]:
		return -1, linux.EBADF
	}
	return moveLater(from, to, flags, task, func() (int, linux.Errno) { return s.between(reader.pipe, writer.pipe, n, false) })
}

// moveLater calls the function move until the error is not EAGAIN. Between calls it waits for both files, unless one of them
// refuses to wait, or flags has SPLICE_F_NONBLOCK.
func moveLater(from, to *file.Description, flags int, task file.Task, move func() (int, linux.Errno)) (int, linux.Errno) {
	n, errno := move()
	if errno == linux.EAGAIN && flags&Nonblock == 0 && !refusesWait(from) && !refusesWait(to) {
		n, errno = moveWhenReady(from, to, task, move)
	}
	if errno != 0 {
		return -1, errno
	}
	return n, 0
}

// refusesWait reports whether the file is in non-blocking mode. The mode of a regular file has no effect.
func refusesWait(d *file.Description) bool { return d.Nonblocking() && !d.HasOffsets() }

func moveWhenReady(from, to *file.Description, task file.Task, move func() (int, linux.Errno)) (int, linux.Errno) {
	s := file.NewSleeper(from.Queue(), 0, task)
	defer s.Leave()
	s.Also(to.Queue())
	defer s.NotAlso(to.Queue())
	for {
		from.Events() // a call of Events makes the file report its next event
		to.Events()
		if n, errno := move(); errno != linux.EAGAIN {
			return n, errno
		}
		if errno := s.Sleep(); errno != 0 {
			return 0, errno
		}
	}
}

// Insert implements vmsplice(2) for the write end of a pipe. It stores as many bytes of b as there is room for, in new pages and
// never as packets. It waits for room for the first bytes, unless flags has SPLICE_F_NONBLOCK. As on Linux, O_NONBLOCK has no
// effect. Errors: EBADF, EPIPE, EAGAIN, EINTR.
func (e *End) Insert(b []byte, flags int, task file.Task) (int, linux.Errno) {
	n, errno := e.store(b, true)
	if errno != linux.EAGAIN || flags&Nonblock != 0 {
		return n, errno
	}
	s := file.NewSleeper(e.Queue(), 0, task)
	defer s.Leave()
	for {
		if n, errno := e.store(b, true); errno != linux.EAGAIN {
			return n, errno
		}
		if errno := s.Sleep(); errno != 0 {
			return 0, errno
		}
	}
}

// NotDirectory returns the error of splice(2) and sendfile(2) for an error of a read: EINVAL for a directory.
func NotDirectory(errno linux.Errno) linux.Errno {
	if errno == linux.EISDIR {
		return linux.EINVAL
	}
	return errno
}

// take reads from the file, and returns 0 bytes with an error. Errors: EINVAL if an offset was passed for a file without
// offsets, and for a directory.
func (s Spliced) take(b []byte) (n int, errno linux.Errno) {
	if s.Offset == nil {
		n, errno = s.Read(b)
	} else if n, errno = s.ReadAt(b, *s.Offset); errno == linux.ESPIPE || *s.Offset < 0 {
		errno = linux.EINVAL
	}
	if errno != 0 {
		return 0, NotDirectory(errno)
	}
	if s.Offset != nil {
		*s.Offset += int64(n)
	}
	return n, 0
}

// give writes to the file. Errors: EINVAL if an offset was passed for a file without offsets.
func (s Spliced) give(b []byte) (int, linux.Errno) {
	switch {
	case s.Offset == nil && s.Put != nil:
		return s.Put(b)
	case s.Offset == nil:
		return s.Write(b)
	}
	n, errno := s.WriteAt(b, *s.Offset)
	if errno == linux.ESPIPE || *s.Offset < 0 {
		return 0, linux.EINVAL
	}
	if errno == 0 {
		*s.Offset += int64(n)
	}
	return n, errno
}

// drainInto moves up to n bytes from the pipe to a file, without waiting.
func (e *End) drainInto(to Spliced, n int) (int, linux.Errno) {
	p := e.pipe
	p.mu.Lock()
	done, errno := 0, linux.Errno(0)
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
		p.notify(writes, file.PollOut)
		return done, 0
	case errno != 0:
		return 0, errno
	case ended:
		return 0, 0
	}
	return 0, linux.EAGAIN
}

// fillFrom moves up to n bytes from a file to the pipe, without waiting.
func (e *End) fillFrom(from Spliced, n int) (int, linux.Errno) {
	p := e.pipe
	p.mu.Lock()
	done, errno, ended := 0, linux.Errno(0), n == 0 && !p.full()
	for done < n && errno == 0 && !ended && p.ends[reads] > 0 && !p.full() {
		var got int
		got, errno = from.take(p.back(n - done))
		ended = errno == 0 && got == 0
		p.fill(got)
		done += got
	}
	widowed := p.ends[reads] == 0
	p.mu.Unlock()
	switch {
	case done > 0:
		p.notify(reads, file.PollIn)
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

// between copies up to n bytes from one pipe to another, and notifies their ends. With consume, the bytes are removed from
// the first pipe.
func (s *System) between(from, to *pipe, n int, consume bool) (int, linux.Errno) {
	n, errno := s.copyBetween(from, to, n, consume)
	if n > 0 {
		from.notify(writes, file.PollOut)
		to.notify(reads, file.PollIn)
	}
	return n, errno
}

// copyBetween does the work of between, but does not notify the ends of the pipes.
func (s *System) copyBetween(from, to *pipe, n int, consume bool) (int, linux.Errno) {
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
	if n = to.copyFrom(&from.pages, n, consume); n == 0 {
		return 0, linux.EAGAIN
	}
	return n, 0
}
