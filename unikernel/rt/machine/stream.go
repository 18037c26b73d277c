package machine

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"loam/abi/linux"
	"loam/driver/console"
	"loam/driver/virtio"
	"loam/fs"
	"loam/posix"
	"loam/unikernel/channel"
	"loam/unikernel/guest"
	"loam/unikernel/rt"
)

// Stream implements rt.Platform. If the loam command started the machine, streams use a channel to it;
// otherwise they use the kernel's console.
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

// command is the program's end of the channel. All three streams share it.
var command = sync.OnceValue(func() *channel.Program { return channel.NewProgram(openConsole) })

// openConsole opens the console device that carries the channel.
func openConsole() (channel.Console, error) {
	return openConsoleAt(0)
}

// openConsoleAt opens a console by its number.
func openConsoleAt(n int) (*console.Device, error) {
	d, err := hardware().find(virtio.Console, n)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errors.New("the machine has no console for it")
	}
	return console.Open(d)
}

// Shared implements rt.Platform. The first console is the channel.
func (platform) Shared(s guest.Shared) (io.ReadWriteCloser, error) {
	return openConsoleAt(1 + s.Server)
}

// stream is a standard stream, by its number. Writes go to the kernel's console (kernel/console.go); reads
// return end of file.
type stream int

// Flags implements posix.Stream.
func (stream) Flags() int { return linux.O_RDWR }

// Attr implements posix.Stream. The stream looks like a pipe to the program.
func (s stream) Attr() fs.Attr {
	return fs.Attr{Inode: uint64(s), Mode: fs.Fifo | 0o600, Links: 1, BlockSize: 4096}
}

// Read implements posix.Stream. It returns end of file.
func (stream) Read([]byte) (int, linux.Errno) { return 0, 0 }

// Write implements posix.Stream.
func (s stream) Write(b []byte) (int, linux.Errno) {
	done := 0
	for done < len(b) {
		n, err := syscall.Write(rt.HostFD+int(s), b[done:])
		if err != nil {
			errno, _ := err.(linux.Errno)
			return done, errno
		}
		done += n
	}
	return done, 0
}

// Ioctl implements posix.Stream.
func (stream) Ioctl(int, []byte) linux.Errno { return linux.ENOTTY }
