package kernel

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"loam/abi/linux"
	"loam/kernel/thread"
)

// Pipes of the runtime.

// pipe creates a pipe and returns its descriptors. at is a page for its calls.
func (u user) pipe(at, flags uint64) (read, written uint64) {
	u.t.Helper()
	u.want(0, linux.SYS_PIPE2, at, flags)
	return u.read(at) & (1<<32 - 1), u.read(at) >> 32
}

// A pipe returns the bytes that were written, in order, however reads and writes are mixed.
func TestPipeBytes(t *testing.T) {
	u := newUser(t)
	at := u.memory(4, protRead|protWrite)
	read, written := u.pipe(at, linux.O_NONBLOCK)
	rng := rand.New(rand.NewPCG(1, 5))
	var model bytes.Buffer
	next := byte(0)
	for range 2000 {
		n := rng.Uint64N(3000)
		buffer := bytesAt(at, 3000)
		if rng.IntN(2) == 0 {
			u.write(at, 0)
			for i := range buffer[:n] {
				next++
				buffer[i] = next
			}
			want := min(int64(n), pipeSize-int64(model.Len()))
			if want == 0 && n > 0 {
				want = -int64(linux.EAGAIN)
			}
			u.want(want, linux.SYS_WRITE, written, at, n)
			if want >= 0 {
				model.Write(buffer[:want])
				next -= byte(int64(n) - want)
			} else {
				next -= byte(n)
			}
			continue
		}
		want := make([]byte, n)
		count, _ := model.Read(want)
		result := int64(count)
		if count == 0 && n > 0 {
			result = -int64(linux.EAGAIN)
		}
		u.want(result, linux.SYS_READ, read, at, n)
		if got := buffer[:count]; !bytes.Equal(got, want[:count]) {
			t.Fatalf("read %x, want %x", got, want[:count])
		}
	}
}

// The flags of each end are its own. They can be read and changed by fcntl(2).
func TestPipeFlags(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	for _, flags := range []uint64{0, linux.O_NONBLOCK, linux.O_CLOEXEC, linux.O_NONBLOCK | linux.O_CLOEXEC} {
		read, written := u.pipe(at, flags)
		for mode, fd := range map[int64]uint64{linux.O_RDONLY: read, linux.O_WRONLY: written} {
			closed := int64(0)
			if flags&linux.O_CLOEXEC != 0 {
				closed = linux.FD_CLOEXEC
			}
			u.want(closed, linux.SYS_FCNTL, fd, linux.F_GETFD)
			u.want(mode|int64(flags&linux.O_NONBLOCK), linux.SYS_FCNTL, fd, linux.F_GETFL)
			u.want(0, linux.SYS_FCNTL, fd, linux.F_SETFD, uint64(1-closed))
			u.want(1-closed, linux.SYS_FCNTL, fd, linux.F_GETFD)
			u.fails(linux.EINVAL, linux.SYS_FCNTL, fd, 999)
		}
		u.want(0, linux.SYS_FCNTL, written, linux.F_SETFL, linux.O_NONBLOCK)
		u.want(int64(flags&linux.O_NONBLOCK), linux.SYS_FCNTL, read, linux.F_GETFL)
		u.want(linux.O_WRONLY|linux.O_NONBLOCK, linux.SYS_FCNTL, written, linux.F_GETFL)
		u.want(0, linux.SYS_CLOSE, read)
		u.want(0, linux.SYS_CLOSE, written)
	}
	u.fails(linux.EINVAL, linux.SYS_PIPE2, at, 1)
	u.fails(linux.EBADF, linux.SYS_FCNTL, firstPipe, linux.F_GETFL)
	u.want(0, linux.SYS_FCNTL, 2, linux.F_GETFL) // the runtime asks whether standard descriptors are open
	u.fails(linux.EBADF, linux.SYS_FCNTL, standardFDs, linux.F_GETFL)
}

// A reader waits for bytes or for the end, and a writer for room or for the end.
func TestPipeWaits(t *testing.T) {
	for _, c := range []struct {
		what    string
		full    bool // the pipe is full, and the first thread writes; otherwise it reads
		do      func(u user, read, written, at uint64)
		repeats int64 // result of the call that is repeated
	}{
		{"bytes arrive", false, func(u user, _, written, at uint64) { u.want(5, linux.SYS_WRITE, written, at, 5) }, 5},
		{"the write end is closed", false, func(u user, _, written, _ uint64) { u.want(0, linux.SYS_CLOSE, written) }, 0},
		{"bytes leave", true, func(u user, read, _, at uint64) { u.want(9, linux.SYS_READ, read, at, 9) }, 9},
		{"the read end is closed", true, func(u user, read, _, _ uint64) { u.want(0, linux.SYS_CLOSE, read) }, -int64(linux.EPIPE)},
	} {
		u := newUser(t)
		at, first := u.memory(2, protRead|protWrite), u.cpu.current
		read, written := u.pipe(at, 0)
		number, fd, size := uint64(linux.SYS_READ), read, uint64(100)
		if c.full {
			u.want(pipeSize, linux.SYS_WRITE, written, at, 2*pipeSize)
			number, fd = linux.SYS_WRITE, written
		}
		other := u.clone()
		u.call(number, fd, at, size)
		u.current(other)
		u.call(linux.SYS_SCHED_YIELD)
		if u.cpu.current != other || !u.kernel().threads.WaitsFor(first, u.kernel().pipes[0].key()) {
			t.Errorf("%s: the first thread does not wait", c.what)
		}
		u.cpu.since = u.now() // a quantum begins: the thread has yielded
		c.do(u, read, written, at)
		u.yields(1)
		u.resumed(first, -int64(linux.EINTR))
		u.want(c.repeats, number, fd, at, size)
	}
}

// A pipe whose ends are closed is free again, and empty.
func TestPipeIsReused(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	var all [][2]uint64
	for range maxPipes {
		read, written := u.pipe(at, linux.O_NONBLOCK)
		all = append(all, [2]uint64{read, written})
		u.want(8, linux.SYS_WRITE, written, at, 8)
	}
	u.fails(linux.EMFILE, linux.SYS_PIPE2, at, 0)
	u.want(0, linux.SYS_CLOSE, all[2][0])
	u.fails(linux.EMFILE, linux.SYS_PIPE2, at, 0) // one end is open
	u.fails(linux.EBADF, linux.SYS_READ, all[2][0], at, 8)
	u.want(0, linux.SYS_CLOSE, all[2][1])
	read, written := u.pipe(at, linux.O_NONBLOCK)
	if read != all[2][0] || written != all[2][1] {
		t.Errorf("descriptors %d and %d, want %v", read, written, all[2])
	}
	u.fails(linux.EAGAIN, linux.SYS_READ, read, at, 8)
}

// Descriptors that the core does not have are not open.
func TestDescriptors(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.want(0, linux.SYS_READ, 0, at, 8) // the end of standard input: a driver delivers it
	for _, fd := range []uint64{3, 99, pollFD - 1, firstPipe, firstPipe + 2*maxPipes, 1 << 31, ^uint64(0)} {
		u.fails(linux.EBADF, linux.SYS_READ, fd, at, 8)
		u.fails(linux.EBADF, linux.SYS_WRITE, fd, at, 8)
		u.fails(linux.EBADF, linux.SYS_CLOSE, fd)
		u.fails(linux.EBADF, linux.SYS_FCNTL, fd, linux.F_GETFD)
	}
	u.fails(linux.EBADF, linux.SYS_WRITE, 0, at, 8)
	u.fails(linux.EBADF, linux.SYS_READ, 1, at, 8)
	for fd := range uint64(standardFDs) {
		u.want(0, linux.SYS_CLOSE, fd)
	}
	u.current(thread.ID(1))
}

// A write of no bytes to a pipe without a reader returns 0, as on Linux.
func TestEmptyWriteToBrokenPipe(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	read, written := u.pipe(at, 0)
	u.want(0, linux.SYS_CLOSE, read)
	u.want(0, linux.SYS_WRITE, written, at, 0)
	u.fails(linux.EPIPE, linux.SYS_WRITE, written, at, 1)
}
