package pipe

import (
	"loam/abi/linux"
	"loam/posix/file"
)

// Limits of the capacity of a pipe in bytes (pipe(7)). A capacity above MaxSize requires CAP_SYS_RESOURCE.
const (
	minSize = 4096
	MaxSize = 1 << 20 // /proc/sys/fs/pipe-max-size
	topSize = 1 << 31
)

// Capacity returns the number of bytes that the pipe holds.
func (e *End) Capacity() int {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return e.pipe.size
}

// Resize sets the capacity of the pipe to at least n bytes, rounded up to a power of two, and returns it (F_SETPIPE_SZ of
// fcntl(2)). privileged means that the caller has CAP_SYS_RESOURCE. Errors: EINVAL, EPERM, and EBUSY if the pipe holds more.
func (e *End) Resize(n int, privileged bool) (int, linux.Errno) {
	if n < 0 || n > topSize {
		return -1, linux.EINVAL
	}
	size := minSize
	for size < n {
		size *= 2
	}
	p := e.pipe
	p.mu.Lock()
	switch {
	case size > MaxSize && size > p.size && !privileged:
		p.mu.Unlock()
		return -1, linux.EPERM
	case size < p.held:
		p.mu.Unlock()
		return -1, linux.EBUSY
	}
	p.resize(size)
	p.mu.Unlock()
	e.pipe.notify(writes, file.PollOut)
	return size, 0
}

// resize moves the content to a ring of another size. The caller holds mu.
func (p *pipe) resize(size int) {
	if p.ring != nil {
		ring := make([]byte, size)
		first := p.front(p.held)
		copy(ring[copy(ring, first):], p.ring[:p.held-len(first)])
		p.ring, p.start = ring, 0
	}
	p.size = size
}
