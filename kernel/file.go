package kernel

import (
	"loam/abi/linux"
	"loam/kernel/space"
)

// This file serves calls on the few file descriptors that the kernel itself has: 0, 1 and 2, the descriptors of the
// runtime's poller (poller.go), and the runtime's own pipes (pipe.go). All other descriptors belong to package posix,
// and calls on them do not reach this package.

const standardFDs = 3

// writeFile implements write(2).
func (k *core) writeFile(c *cpu, fd, addr, size uint64) (int64, bool) {
	if p, end := k.findPipe(fd); p != nil && end == writeEnd {
		return p.writePipe(c, addr, size)
	}
	return k.writeStream(fd, addr, size), true
}

// writeStream implements write(2) for files that always have room. It writes at most 64 KiB.
func (k *core) writeStream(fd, addr, size uint64) int64 {
	const most = 64 << 10 // limits the time during which interrupts are disabled
	size = min(size, most)
	switch {
	case fd == wakeFD:
		k.wakePoller()
		return int64(size)
	case fd != 1 && fd != 2:
		return -int64(linux.EBADF)
	case !k.touch(addr, size, space.Read):
		return -int64(linux.EFAULT)
	}
	k.write(fd, bytesAt(addr, int(size)))
	return int64(size)
}

// readFile implements read(2).
func (k *core) readFile(c *cpu, fd, addr, size uint64) (int64, bool) {
	if p, end := k.findPipe(fd); p != nil && end == readEnd {
		return p.readPipe(c, addr, size)
	}
	return readStream(fd), true
}

// readStream implements read(2) for files that never block. File descriptor 0 is always at its end here, because a driver
// delivers the input of the console.
func readStream(fd uint64) int64 {
	if fd == 0 {
		return 0
	}
	return -int64(linux.EBADF)
}

// closeFile implements close(2). The descriptors of the poller and the standard descriptors stay open.
func (k *core) closeFile(fd uint64) int64 {
	if p, end := k.findPipe(fd); p != nil {
		return p.close(k, end)
	}
	if fd >= standardFDs && fd != pollFD && fd != wakeFD {
		return -int64(linux.EBADF)
	}
	return 0
}

// fcntl implements fcntl(2). The runtime uses it to check which descriptors are open.
func (k *core) fcntl(fd, command, arg uint64) int64 {
	if p, end := k.findPipe(fd); p != nil {
		return p.control(end, command, arg)
	}
	if fd >= standardFDs {
		return -int64(linux.EBADF)
	}
	return 0
}
