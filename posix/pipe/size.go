package pipe

import (
	"loam/abi/linux"
	"loam/posix/file"
)

// Limits of the capacity of a pipe in bytes (pipe(7)).
const (
	minSize = pageSize
	topSize = 1 << 31
)

// roundSize returns the smallest capacity of a pipe that is at least n bytes: a power of two, and at least a page.
func roundSize(n int) int {
	size := minSize
	for size < n {
		size *= 2
	}
	return size
}

// Capacity returns the number of bytes that the pipe holds.
func (e *End) Capacity() int {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return e.pipe.capacity * pageSize
}

// Resize sets the capacity of the pipe to at least n bytes, rounded up to a power of two, and returns it (F_SETPIPE_SZ of
// fcntl(2)). Errors: EINVAL, EPERM, and EBUSY if the pipe uses more pages.
func (e *End) Resize(n int, who Creator) (int, linux.Errno) {
	if n < 0 || n > topSize {
		return -1, linux.EINVAL
	}
	size := roundSize(n)
	if errno := e.pipe.recharge(size, who); errno != 0 {
		return -1, errno
	}
	e.pipe.notify(writes, file.PollOut)
	return size, 0
}

// recharge sets the capacity in bytes. Errors: EPERM, EBUSY; EBADF if another thread has closed both ends meanwhile.
func (p *pipe) recharge(size int, who Creator) linux.Errno {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := size / pageSize
	switch q := p.quotas; {
	case q == nil:
		return linux.EBADF
	case n > p.capacity && int64(size) > q.MaxSize() && !who.Resource:
		return linux.EPERM
	case n < p.used:
		return linux.EBUSY
	default:
		if errno := q.change(p.uid, p.capacity, n, who.Unlimited); errno != 0 {
			return errno
		}
	}
	p.resize(n)
	return 0
}
