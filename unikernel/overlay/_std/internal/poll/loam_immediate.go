package poll

// Reads and writes of files that keep nobody waiting: regular files of Loam's tree, and
// devices such as /dev/null.
//
// The lock of an FD does for a file what such a file does for itself. It has writes take
// turns: the file below has a lock for that. It unblocks who waits when the FD is closed:
// nobody waits. It keeps the number of the descriptor from being given to another file
// while a call is under way: a call names its file, and is refused when the number leads
// elsewhere. Close does not wait for calls of a blocking FD on Linux either; one that is
// under way then comes before it, or fails.
//
// All else, errors and what is left of a write that came up short included, goes the way
// of the toolchain.

import (
	"internal/asan"
	"internal/msan"
	"internal/race"
	"unsafe" // and for go:linkname
)

// loamFile is what an FD has more here.
type loamFile struct {
	open unsafe.Pointer // names the open file; nil if it may keep its callers waiting
}

// loamImmediate names the open file of a descriptor, or returns nil. The others return
// the number of bytes, or -1 when they have done nothing. They keep p to themselves.
//
//go:linkname loamImmediate loam/unikernel/rt.immediate
func loamImmediate(fd int) unsafe.Pointer

//go:linkname loamRead loam/unikernel/rt.readFrom
//go:noescape
func loamRead(open unsafe.Pointer, fd int, p []byte) int

//go:linkname loamWrite loam/unikernel/rt.writeTo
//go:noescape
func loamWrite(open unsafe.Pointer, fd int, p []byte) int

//go:linkname loamReadAt loam/unikernel/rt.readAt
//go:noescape
func loamReadAt(open unsafe.Pointer, fd int, p []byte, off int64) int

//go:linkname loamWriteAt loam/unikernel/rt.writeAt
//go:noescape
func loamWriteAt(open unsafe.Pointer, fd int, p []byte, off int64) int

// loamWatched is set where package syscall tells a sanitizer of each read and write.
const loamWatched = race.Enabled || msan.Enabled || asan.Enabled

// Init initializes the FD, as it says at linuxInit.
func (fd *FD) Init(net string, pollable bool) error {
	err := fd.linuxInit(net, pollable)
	if !loamWatched && fd.isBlocking != 0 {
		fd.loam.open = loamImmediate(fd.Sysfd)
	}
	return err
}

// Read implements io.Reader.
func (fd *FD) Read(p []byte) (int, error) {
	if fd.loam.open != nil && len(p) > 0 && len(p) <= maxRW && !fd.closing() {
		if n := loamRead(fd.loam.open, fd.Sysfd, p); n >= 0 {
			return n, fd.eofError(n, nil)
		}
	}
	return fd.linuxRead(p)
}

// Write implements io.Writer.
func (fd *FD) Write(p []byte) (int, error) {
	if fd.loam.open == nil || fd.closing() {
		return fd.linuxWrite(p)
	}
	n := loamWrite(fd.loam.open, fd.Sysfd, p)
	if n == len(p) {
		return n, nil
	}
	n = max(n, 0)
	rest, err := fd.linuxWrite(p[n:])
	return n + rest, err
}

// Pread wraps the pread system call.
func (fd *FD) Pread(p []byte, off int64) (int, error) {
	if fd.loam.open != nil && len(p) > 0 && len(p) <= maxRW && !fd.closing() {
		if n := loamReadAt(fd.loam.open, fd.Sysfd, p, off); n >= 0 {
			return n, fd.eofError(n, nil)
		}
	}
	return fd.linuxPread(p, off)
}

// Pwrite wraps the pwrite system call.
func (fd *FD) Pwrite(p []byte, off int64) (int, error) {
	if fd.loam.open == nil || fd.closing() {
		return fd.linuxPwrite(p, off)
	}
	n := loamWriteAt(fd.loam.open, fd.Sysfd, p, off)
	if n == len(p) {
		return n, nil
	}
	n = max(n, 0)
	rest, err := fd.linuxPwrite(p[n:], off+int64(n))
	return n + rest, err
}
