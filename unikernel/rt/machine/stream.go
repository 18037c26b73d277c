package machine

import (
	"syscall"

	"loam/fs"
	"loam/unikernel/rt"
)

// stream is a standard stream of the machine, by its number. What is written goes
// to a port of the kernel's (kernel/console.go); there is nothing to read.
type stream int

// Flags implements posix.Stream.
func (stream) Flags() int { return syscall.O_RDWR }

// Attr implements posix.Stream: to the program it is a pipe.
func (s stream) Attr() fs.Attr {
	return fs.Attr{Inode: uint64(s), Mode: fs.Fifo | 0o600, Links: 1, BlockSize: 4096}
}

// Read implements posix.Stream.
func (stream) Read([]byte) (int, syscall.Errno) { return 0, 0 }

// Write implements posix.Stream.
func (s stream) Write(b []byte) (int, syscall.Errno) {
	done := 0
	for done < len(b) {
		n, err := syscall.Write(rt.HostFD+int(s), b[done:])
		if err != nil {
			errno, _ := err.(syscall.Errno)
			return done, errno
		}
		done += n
	}
	return done, 0
}

// Ioctl implements posix.Stream.
func (stream) Ioctl(int, []byte) syscall.Errno { return syscall.ENOTTY }
