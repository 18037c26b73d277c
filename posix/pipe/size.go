package pipe

import (
	"loam/abi/linux"
	"loam/posix/file"
)

// Limits of the capacity of a pipe in bytes (pipe(7)). A capacity above MaxSize requires CAP_SYS_RESOURCE.
const (
	minSize = pageSize
	MaxSize = 1 << 20 // /proc/sys/fs/pipe-max-size
	topSize = 1 << 31
)

// Capacity returns the number of bytes that the pipe holds.
func (e *End) Capacity() int {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return e.pipe.capacity * pageSize
}

// Resize sets the capacity of the pipe to at least n bytes, rounded up to a power of two, and returns it (F_SETPIPE_SZ of
// fcntl(2)). privileged means that the caller has CAP_SYS_RESOURCE. Errors: EINVAL, EPERM, and EBUSY if the pipe uses more pages.
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
	case size > MaxSize && size/pageSize > p.capacity && !privileged:
		p.mu.Unlock()
		return -1, linux.EPERM
	case size/pageSize < p.used:
		p.mu.Unlock()
		return -1, linux.EBUSY
	}
	p.resize(size / pageSize)
	p.mu.Unlock()
	e.pipe.notify(writes, file.PollOut)
	return size, 0
}
