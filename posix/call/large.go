package call

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix"
)

// Large reads and writes of files. A file in the file tree does not block, and programs expect that one call transfers all
// bytes. If the bytes must be copied, a transfer of more than most bytes is made in parts.

// Ending is implemented by Memory of a thread that other threads can end.
type Ending interface {
	// Ending reports whether the thread ends when its call returns.
	Ending() bool
}

// parts is a transfer in parts of at most most bytes between a file and the caller's memory.
type parts struct {
	c     Caller
	o     *posix.Opened
	addr  uint64 // address of the first byte
	write bool
	b     []byte // buffer of all parts; nil before the first copy
}

// large implements read(2), write(2), pread64(2) and pwrite64(2) for more than most bytes that must be copied, at an offset or
// at fs.Current. ok is false for other transfers and for wrong arguments; nothing was done then.
func (c Caller) large(a Args, offset int64, write bool) (done int, errno linux.Errno, ok bool) {
	n := int(a.A3)
	if n <= most {
		return 0, 0, false
	}
	o := c.Process.Opened(fd(a.A1))
	if o == nil || o.PathOnly() || !o.HasOffsets() || o.Misaligned(a.A2, offset, write) {
		return 0, 0, false
	}
	if write && !o.MayWrite() || !write && !o.MayRead() {
		return 0, 0, false
	}
	if b, errno := c.buffer(a.A2, n); b != nil || errno != 0 || !o.Hold() {
		return 0, 0, false
	}
	defer o.Release()
	t := parts{c: c, o: o, addr: a.A2, write: write}
	n = min(n, longest)
	switch {
	case write && o.Discards():
		return n, 0, true
	case offset != fs.Current:
		done, _, errno = t.run(n, offset)
	case t.endless():
		done, _, errno = t.run(n, 0)
	default:
		o.MoveOffset(func(at int64) int64 {
			done, at, errno = t.run(n, at)
			return at
		})
	}
	return done, errno, true
}

// endless reports whether the file is a device whose content does not depend on the offset, such as /dev/zero.
func (t *parts) endless() bool { return t.o.Source() != nil || t.o.Sink() != nil }

// run transfers n bytes at an offset. It returns the number of bytes that were transferred, and the offset after them. It
// returns an error only if no byte was transferred.
func (t *parts) run(n int, offset int64) (done int, end int64, errno linux.Errno) {
	for done < n && (done == 0 || !t.interrupted()) {
		size := min(n-done, most)
		moved := 0
		moved, offset, errno = t.part(t.addr+uint64(done), size, offset)
		done += moved
		if moved < size {
			break
		}
	}
	if done > 0 {
		errno = 0
	}
	return done, offset, errno
}

// interrupted reports whether the transfer ends between two parts. As on Linux, any signal ends a transfer of an endless
// device, and only the end of the thread ends another one.
func (t *parts) interrupted() bool {
	i := t.c.Process.Waiting().Interrupt
	if i == nil || !i.Raised() {
		return false
	}
	e, ok := t.c.Memory.(Ending)
	return t.endless() || ok && e.Ending()
}

// part transfers n bytes at addr. Its results are those of run; the number of bytes is smaller than n after an error.
func (t *parts) part(addr uint64, n int, offset int64) (int, int64, linux.Errno) {
	if done, errno, ok := t.c.inPlace(t.o, addr, n, offset, t.write); ok {
		done = max(done, 0)
		return done, offset + int64(done), errno
	}
	if t.b == nil {
		t.b = make([]byte, n)
	}
	b := t.b[:n]
	if t.write {
		got, errno := eachPage(addr, b, func(addr uint64, b []byte) linux.Errno { return t.c.Memory.Read(b, addr) })
		if errno != 0 {
			return 0, offset, errno
		}
		n, end, errno := t.c.Process.PwriteOpened(t.o, b[:got], offset)
		if errno != 0 {
			return 0, offset, errno
		}
		return n, end, 0
	}
	got, errno := t.o.ReadAt(b, offset)
	if errno == 0 {
		got, errno = eachPage(addr, b[:got], t.c.Memory.Write)
	}
	if errno != 0 {
		return 0, offset, errno
	}
	return got, offset + int64(got), 0
}

// eachPage copies b by the function move, which copies bytes at an address of the caller's memory. It returns the number of
// bytes before the first page that cannot be accessed. Errors: EFAULT if this is the first page.
func eachPage(addr uint64, b []byte, move func(addr uint64, b []byte) linux.Errno) (done int, errno linux.Errno) {
	if move(addr, b) == 0 {
		return len(b), 0
	}
	for done < len(b) {
		at := addr + uint64(done)
		n := min(len(b)-done, pageSize-int(at%pageSize))
		if errno = move(at, b[done:done+n]); errno != 0 {
			break
		}
		done += n
	}
	if done > 0 {
		errno = 0
	}
	return done, errno
}
