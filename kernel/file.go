package kernel

import (
	"syscall"

	"loam/kernel/space"
)

// Descriptors 0, 1 and 2, those of the poller, and the runtime's own pipes (pipe.go). All
// others are package posix's and do not come here.

const standardFDs = 3

// writeFile is write(2).
func writeFile(c *cpu, fd, addr, size uint64) (int64, bool) {
	if p, end := findPipe(fd); p != nil && end == writeEnd {
		return p.writePipe(c, addr, size)
	}
	return writeStream(fd, addr, size), true
}

// writeStream is write(2) for what always has room.
func writeStream(fd, addr, size uint64) int64 {
	const most = 64 << 10 // other threads want to run too
	size = min(size, most)
	switch {
	case fd == wakeFD:
		wakePoller()
		return int64(size)
	case fd != 1 && fd != 2:
		return -int64(syscall.EBADF)
	case !touch(addr, size, space.Read):
		return -int64(syscall.EFAULT)
	}
	write(fd, bytesAt(addr, int(size)))
	return int64(size)
}

// readFile is read(2).
func readFile(c *cpu, fd, addr, size uint64) (int64, bool) {
	if p, end := findPipe(fd); p != nil && end == readEnd {
		return p.readPipe(c, addr, size)
	}
	return readStream(fd), true
}

// readStream is read(2) for what never waits. There is nothing to read from descriptor 0
// here: what is typed comes by a driver.
func readStream(fd uint64) int64 {
	if fd == 0 {
		return 0
	}
	return -int64(syscall.EBADF)
}

// closeFile is close(2). The poller is there for good.
func closeFile(fd uint64) int64 {
	if p, end := findPipe(fd); p != nil {
		return p.close(end)
	}
	if fd >= standardFDs && fd != pollFD && fd != wakeFD {
		return -int64(syscall.EBADF)
	}
	return 0
}

// fcntl is fcntl(2), by which the runtime asks whether descriptors are open.
func fcntl(fd, command, arg uint64) int64 {
	if p, end := findPipe(fd); p != nil {
		return p.control(end, command, arg)
	}
	if fd >= standardFDs {
		return -int64(syscall.EBADF)
	}
	return 0
}
