package kernel

import (
	"loam/abi/linux"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Pipes that the Go runtime creates by direct calls to the kernel. It uses one for signals that arrive in handlers.
// Pipes of the program belong to package posix.

const (
	maxPipes  = 4
	pipeSize  = 4096       // capacity of a pipe in bytes: PIPE_BUF of Linux
	firstPipe = wakeFD + 1 // descriptor of the read end of the first pipe, which its write end follows
)

// pipe is a pipe. It is unused while neither end is open.
type pipe struct {
	ends          [2]pipeEnd
	data          [pipeSize]byte
	read, written uint64 // number of bytes read and written since the pipe was created
}

// pipeEnd is the state of one end of a pipe.
type pipeEnd struct {
	open         bool
	nonblock     bool // O_NONBLOCK
	closedOnExec bool // FD_CLOEXEC: stored only, since the program never calls execve(2)
}

const readEnd, writeEnd = 0, 1

// makePipe implements pipe2(2).
func (k *core) makePipe(addr, flags uint64) int64 {
	const size = 8
	switch {
	case flags&^(linux.O_NONBLOCK|linux.O_CLOEXEC) != 0:
		return -int64(linux.EINVAL)
	case !k.touch(addr, size, space.Write):
		return -int64(linux.EFAULT)
	}
	for i := range k.pipes {
		p := &k.pipes[i]
		if p.ends[readEnd].open || p.ends[writeEnd].open {
			continue
		}
		end := pipeEnd{open: true, nonblock: flags&linux.O_NONBLOCK != 0, closedOnExec: flags&linux.O_CLOEXEC != 0}
		p.ends[readEnd], p.ends[writeEnd] = end, end
		p.read, p.written = 0, 0
		*word32(addr), *word32(addr + 4) = firstPipe+2*uint32(i), firstPipe+2*uint32(i)+1
		return 0
	}
	return -int64(linux.EMFILE)
}

// findPipe returns the pipe of an open file descriptor, and which end it is; nil if there is none.
func (k *core) findPipe(fd uint64) (p *pipe, end int) {
	n := fd - firstPipe
	if n >= 2*maxPipes || !k.pipes[n/2].ends[n%2].open {
		return nil, 0
	}
	return &k.pipes[n/2], int(n % 2)
}

// readPipe implements read(2) on a pipe.
func (p *pipe) readPipe(c *cpu, addr, size uint64) (int64, bool) {
	k := c.kernel()
	n := min(size, p.written-p.read)
	switch {
	case size == 0, n == 0 && !p.ends[writeEnd].open:
		return 0, true
	case n == 0:
		return p.wait(c, readEnd)
	case !k.touch(addr, n, space.Write):
		return -int64(linux.EFAULT), true
	}
	to := bytesAt(addr, int(n))
	for i := range to {
		to[i] = p.data[p.read%pipeSize]
		p.read++
	}
	p.wake(k)
	return int64(n), true
}

// writePipe implements write(2) on a pipe. It returns EPIPE without sending a SIGPIPE.
func (p *pipe) writePipe(c *cpu, addr, size uint64) (int64, bool) {
	k := c.kernel()
	n := min(size, pipeSize-(p.written-p.read))
	switch {
	case size == 0:
		return 0, true
	case !p.ends[readEnd].open:
		return -int64(linux.EPIPE), true
	case n == 0:
		return p.wait(c, writeEnd)
	case !k.touch(addr, n, space.Read):
		return -int64(linux.EFAULT), true
	}
	for _, b := range bytesAt(addr, int(n)) {
		p.data[p.written%pipeSize] = b
		p.written++
	}
	p.wake(k)
	return int64(n), true
}

// key returns the key with which threads wait for p in the table of threads.
func (p *pipe) key() uint64 { return uint64(addressOf(&p.read)) }

// wait blocks the running thread until p changes, or returns EAGAIN if the end is non-blocking.
func (p *pipe) wait(c *cpu, end int) (int64, bool) {
	k := c.kernel()
	if p.ends[end].nonblock {
		return -int64(linux.EAGAIN), true
	}
	return k.wait(c, p.key(), thread.Never, 0)
}

// wake wakes all threads that wait for p. Their calls return EINTR, and the runtime retries.
func (p *pipe) wake(k *core) { k.threads.Wake(p.key(), thread.Max, -int64(linux.EINTR)) }

// control implements fcntl(2) on one end of a pipe.
func (p *pipe) control(end int, command, arg uint64) (result int64) {
	e := &p.ends[end]
	switch command {
	case linux.F_GETFD:
		if e.closedOnExec {
			result = linux.FD_CLOEXEC
		}
	case linux.F_SETFD:
		e.closedOnExec = arg&linux.FD_CLOEXEC != 0
	case linux.F_GETFL:
		result = int64(end) // the end number is the access mode: O_RDONLY (0) or O_WRONLY (1)
		if e.nonblock {
			result |= linux.O_NONBLOCK
		}
	case linux.F_SETFL:
		e.nonblock = arg&linux.O_NONBLOCK != 0
	default:
		return -int64(linux.EINVAL)
	}
	return result
}

// close implements close(2) on one end of a pipe.
func (p *pipe) close(k *core, end int) int64 {
	p.ends[end].open = false
	p.wake(k)
	return 0
}
