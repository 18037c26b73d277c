package machine

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"loam/driver/console"
	"loam/driver/virtio"
	"loam/fs"
	"loam/posix"
	"loam/unikernel/channel"
	"loam/unikernel/guest"
	"loam/unikernel/rt"
)

// Stream implements rt.Platform: by a channel to the loam command, if that has
// started the machine, and else by the kernel.
func (platform) Stream(number int, c guest.Config) posix.Stream {
	if c.Streams == [3]uint32{} {
		return stream(number)
	}
	if c.Streams[number] == 0 {
		return nil
	}
	return command().Streams(c.Streams, c.Ordered)[number]
}

// Results implements rt.Platform.
func (platform) Results(guest.Config) io.Writer { return command().Results() }

// command is the channel's streams, the same for all three of them.
var command = sync.OnceValue(func() *channel.Program { return channel.NewProgram(openConsole) })

// openConsole opens the console that the channel is on.
func openConsole() (channel.Console, error) {
	d, err := hardware().find(virtio.Console, 0)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errors.New("the machine has no console")
	}
	return console.Open(d)
}

// stream is a standard stream by its number. What is written goes to a port of the
// kernel's (kernel/console.go); there is nothing to read.
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
