package rt

import (
	"io"

	"loam/fs"
	"loam/link"
	"loam/posix"
	"loam/unikernel/guest"
)

// Platform is what Loam stands on, as far as it is not the same for a process of
// Linux and for a virtual machine.
type Platform interface {
	// Open makes the device of a link. nil and no error: there is none; the
	// program has its loopback.
	Open(l guest.Link) (link.Device, error)
	// Stream is the standard stream of a number from 0 to 2; nil: not open.
	Stream(number int, c guest.Config) posix.Stream
	// Devices makes the files of devices that only this platform has, in /dev.
	Devices(v *fs.View, c guest.Config) error
	// Results is where the archive of guest.Config.Results goes.
	Results(c guest.Config) io.Writer
	// Archive is the archive that guest.Mount numbers so. It stays for ever.
	Archive(number int) ([]byte, error)
	// Executable is the path of the program, and its content where that can be had.
	Executable() (path string, content []byte)
	// Maps is /proc/self/maps; empty: not known.
	Maps() string
	// ClockSource is what the clocks are made of, as Linux calls it; empty: not known. It is asked
	// before the program begins.
	ClockSource() string
}
