package poll

// Fast reads and writes of files that never block: regular files of Loam's tree, and devices such as
// /dev/null. They bypass the lock of the FD. The lock has three purposes, and these files do not need it
// for any of them:
// - It serialises writes. The file below has a lock of its own for that.
// - It unblocks callers when the FD is closed. No caller of these files blocks.
// - It keeps the descriptor number from being reused during a call. A call here names its open file, and
//   fails if the number refers to another file by then. On Linux, too, Close does not wait for calls on a
//   blocking FD: such a call happens before Close, or fails.
//
// Everything else uses the toolchain's functions, including errors and the remainder of a partial write.

import (
	"internal/asan"
	"internal/msan"
	"internal/race"
	"unsafe" // go:linkname requires this import too
)

// loamFile is a field that Loam's edits add to the struct FD of package poll.
type loamFile struct {
	open unsafe.Pointer // handle of the open file; nil if calls on the file may block
}

// loamImmediate returns the handle of a descriptor's open file, or nil if its calls may block. The four
// functions below return the number of bytes, or -1 if they have done nothing. They do not let p escape.
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

// loamWatched is set in builds where package syscall reports each read and write to a sanitizer.
const loamWatched = race.Enabled || msan.Enabled || asan.Enabled

// Init initializes the FD as linuxInit documents, and stores the handle for the fast path.
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
