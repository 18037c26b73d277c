package kernel

import (
	"syscall"

	"loam/kernel/space"
	"loam/kernel/thread"
)

// Pipes of the runtime's own, which it makes and uses past the door; those of the
// program are package posix's. Go's runtime has them to hear of signals in handlers.

const (
	maxPipes  = 4
	pipeSize  = 4096       // PIPE_BUF of Linux
	firstPipe = wakeFD + 1 // descriptors: of each pipe the end to read from, and the other
)

// pipe is a pipe; if neither end is open there is none.
type pipe struct {
	ends          [2]pipeEnd
	data          [pipeSize]byte
	read, written uint64 // bytes since it was made
}

type pipeEnd struct {
	open         bool
	nonblock     bool // O_NONBLOCK
	closedOnExec bool // FD_CLOEXEC: nothing is ever executed
}

const readEnd, writeEnd = 0, 1

var pipes [maxPipes]pipe

// makePipe is pipe2(2).
func makePipe(addr, flags uint64) int64 {
	const size = 8
	switch {
	case flags&^(syscall.O_NONBLOCK|syscall.O_CLOEXEC) != 0:
		return -int64(syscall.EINVAL)
	case !touch(addr, size, space.Write):
		return -int64(syscall.EFAULT)
	}
	for i := range pipes {
		p := &pipes[i]
		if p.ends[readEnd].open || p.ends[writeEnd].open {
			continue
		}
		end := pipeEnd{open: true, nonblock: flags&syscall.O_NONBLOCK != 0, closedOnExec: flags&syscall.O_CLOEXEC != 0}
		p.ends[readEnd], p.ends[writeEnd] = end, end
		p.read, p.written = 0, 0
		*word32(addr), *word32(addr + 4) = firstPipe+2*uint32(i), firstPipe+2*uint32(i)+1
		return 0
	}
	return -int64(syscall.EMFILE)
}

// findPipe is the pipe of a descriptor that is open, and which end it is; nil if there is
// none.
func findPipe(fd uint64) (p *pipe, end int) {
	n := fd - firstPipe
	if n >= 2*maxPipes || !pipes[n/2].ends[n%2].open {
		return nil, 0
	}
	return &pipes[n/2], int(n % 2)
}

// readPipe is read(2).
func (p *pipe) readPipe(c *cpu, addr, size uint64) (int64, bool) {
	n := min(size, p.written-p.read)
	switch {
	case size == 0, n == 0 && !p.ends[writeEnd].open:
		return 0, true
	case n == 0:
		return p.wait(c, readEnd)
	case !touch(addr, n, space.Write):
		return -int64(syscall.EFAULT), true
	}
	to := bytesAt(addr, int(n))
	for i := range to {
		to[i] = p.data[p.read%pipeSize]
		p.read++
	}
	p.wake()
	return int64(n), true
}

// writePipe is write(2), but for SIGPIPE.
func (p *pipe) writePipe(c *cpu, addr, size uint64) (int64, bool) {
	n := min(size, pipeSize-(p.written-p.read))
	switch {
	case !p.ends[readEnd].open:
		return -int64(syscall.EPIPE), true
	case size == 0:
		return 0, true
	case n == 0:
		return p.wait(c, writeEnd)
	case !touch(addr, n, space.Read):
		return -int64(syscall.EFAULT), true
	}
	for _, b := range bytesAt(addr, int(n)) {
		p.data[p.written%pipeSize] = b
		p.written++
	}
	p.wake()
	return int64(n), true
}

// key is what threads wait for at p.
func (p *pipe) key() uint64 { return uint64(addressOf(&p.read)) }

// wait puts the running thread to sleep until something happens at p, if its end may wait.
func (p *pipe) wait(c *cpu, end int) (int64, bool) {
	if p.ends[end].nonblock {
		return -int64(syscall.EAGAIN), true
	}
	return c.wait(p.key(), thread.Never, 0)
}

// wake wakes who waits: it is told that it was interrupted, and asks again.
func (p *pipe) wake() { threads.Wake(p.key(), thread.Max, -int64(syscall.EINTR)) }

// control is fcntl(2).
func (p *pipe) control(end int, command, arg uint64) (result int64) {
	e := &p.ends[end]
	switch command {
	case syscall.F_GETFD:
		if e.closedOnExec {
			result = syscall.FD_CLOEXEC
		}
	case syscall.F_SETFD:
		e.closedOnExec = arg&syscall.FD_CLOEXEC != 0
	case syscall.F_GETFL:
		result = int64(end) // O_RDONLY, O_WRONLY
		if e.nonblock {
			result |= syscall.O_NONBLOCK
		}
	case syscall.F_SETFL:
		e.nonblock = arg&syscall.O_NONBLOCK != 0
	default:
		return -int64(syscall.EINVAL)
	}
	return result
}

// close is close(2).
func (p *pipe) close(end int) int64 {
	p.ends[end].open = false
	p.wake()
	return 0
}
