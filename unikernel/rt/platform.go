package rt

import (
	"io"

	"loam/block"
	"loam/link"
	"loam/posix"
	"loam/unikernel/guest"
)

// Platform is the part of Loam's environment that differs between a Linux process and a virtual machine.
type Platform interface {
	// Open opens the device of a link. It returns nil and no error if there is no such device; the program
	// then has only its loopback interface.
	Open(l guest.Link) (link.Device, error)
	// Stream returns standard stream number 0 to 2, or nil if it is not open.
	Stream(number int, c guest.Config) posix.Stream
	// Disk opens disk n of a kind, counted from 0; in a process, n is guest.Disk.FD. name is for messages.
	Disk(kind string, n int, name string) (block.Device, error)
	// Results returns the writer for the archive of guest.Config.Results.
	Results(c guest.Config) io.Writer
	// Archive returns the archive with the number guest.Mount.Archive. The bytes stay valid forever.
	Archive(number int) ([]byte, error)
	// Shared opens the connection to the server of a folder of the host.
	Shared(s guest.Shared) (io.ReadWriteCloser, error)
	// Executable returns the program's path, and its content if the platform has it (else nil).
	Executable(c guest.Config) (path string, content []byte)
	// Maps returns the content of /proc/self/maps, or an empty string if it is not known.
	Maps() string
	// ClockSource returns the name of the clock source in Linux's terms, or an empty string if it is not
	// known.
	ClockSource(c guest.Config) string
	// Meltdown says in Linux's words whether the CPU is vulnerable to Meltdown, or returns an empty string if it is not known.
	Meltdown() string
}
