package rt

import (
	"sync/atomic"
	"unsafe"

	"loam/abi/linux"
	"loam/posix"
)

// Fast paths for read and write from packages syscall and internal/poll. They bypass the table of calls,
// because read and write are the most frequent calls. See loam_transfer.go and loam_immediate.go of the
// overlay.
//
// Files that behave the same at every offset, such as /dev/null, are called directly first. Their handle
// needs no bubble or stack handling, and an error means that it has done nothing.

// served is the process while Loam serves its calls. It is nil before start and once the program exits.
var served atomic.Pointer[posix.Process]

// opened returns the program's open file for fd, or nil. With nil, callers take the slow path. That path
// finds the error, and truncates fd to 32 bits as Linux does.
func opened(fd int) *posix.Opened {
	if p := served.Load(); p != nil {
		return p.Opened(fd)
	}
	return nil
}

//go:linkname read
func read(fd int, p []byte) (n int, err error) {
	if o := opened(fd); o != nil {
		if s := o.Source(); s != nil {
			if n, err := s.ReadAt(p, 0); err == nil {
				return n, nil
			}
		}
	}
	return readAny(fd, p)
}

//go:linkname write
func write(fd int, p []byte) (n int, err error) {
	if o := opened(fd); o != nil {
		if s := o.Sink(); s != nil {
			if n, err := s.WriteAt(p, 0); err == nil {
				return n, nil
			}
		}
	}
	return writeAny(fd, p)
}

// readAny reads from any descriptor, including the host's. Memory on a stack is copied unless the file
// allows it: the code below may keep the slice where other goroutines see it while this goroutine blocks.
func readAny(fd int, p []byte) (n int, err error) {
	if isHosts(fd) {
		return hostRead(fd, p)
	}
	at := unsafe.Pointer(unsafe.SliceData(p))
	bubble, ok, onStack := enterWith(at)
	if !ok {
		return -1, linux.ENOSYS // the values that package syscall returns for an error
	}
	if ending.Load() {
		park()
	}
	fd = int(int32(fd))
	errno := linux.EBADF
	switch o := process.Opened(fd); {
	case o == nil:
	case onStack && !o.TakesStack():
		copied(len(p), func(b []byte) {
			if n, errno = process.ReadOpened(o, b); errno == 0 {
				copy(p, b[:n])
			}
		})
	default:
		n, errno = process.ReadOpened(o, p)
	}
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1, errno
	}
	return n, nil
}

// writeAny writes to any descriptor, in the same way as readAny.
func writeAny(fd int, p []byte) (n int, err error) {
	if isHosts(fd) {
		return hostWrite(fd, p)
	}
	at := unsafe.Pointer(unsafe.SliceData(p))
	bubble, ok, onStack := enterWith(at)
	if !ok {
		return -1, linux.ENOSYS
	}
	if ending.Load() {
		park()
	}
	fd = int(int32(fd))
	errno := linux.EBADF
	switch o := process.Opened(fd); {
	case o == nil:
	case onStack && !o.TakesStack():
		copied(len(p), func(b []byte) {
			copy(b, p)
			n, errno = process.WriteOpened(o, b)
		})
	default:
		n, errno = process.WriteOpened(o, p)
	}
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1, errno
	}
	return n, nil
}

// isHosts reports whether a descriptor is the host's: a link of Loam, or any descriptor before Loam serves
// calls.
func isHosts(fd int) bool { return !serving || uint32(fd)-HostFD < HostFD }

// immediate returns an opaque handle of the open file behind fd, for readFrom and writeTo. It returns nil
// if the file is not Immediate.
//
//go:linkname immediate
func immediate(fd int) unsafe.Pointer {
	if o := opened(fd); o != nil && o.Immediate() {
		return unsafe.Pointer(o)
	}
	return nil
}

// readFrom reads from a file that immediate returned, if fd still refers to it. The program may have closed
// fd or replaced it with dup2. The result is -1 if nothing was done.
//
//go:linkname readFrom
func readFrom(file unsafe.Pointer, fd int, p []byte) int {
	o := opened(fd)
	if o == nil || unsafe.Pointer(o) != file {
		return -1
	}
	if s := o.Source(); s != nil {
		if n, err := s.ReadAt(p, 0); err == nil {
			return n
		}
		return -1
	}
	bubble := leaveBubble()
	n, errno := process.ReadOpened(o, p)
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1
	}
	return n
}

// writeTo writes to a file that immediate returned, under the same conditions as readFrom.
//
//go:linkname writeTo
func writeTo(file unsafe.Pointer, fd int, p []byte) int {
	o := opened(fd)
	if o == nil || unsafe.Pointer(o) != file {
		return -1
	}
	if s := o.Sink(); s != nil {
		if n, err := s.WriteAt(p, 0); err == nil {
			return n
		}
		return -1
	}
	bubble := leaveBubble()
	n, errno := process.WriteOpened(o, p)
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1
	}
	return n
}

// readAt reads at an offset, as pread(2) does, under the same conditions as readFrom. writeAt writes in the same way,
// as pwrite(2) does.
//
//go:linkname readAt
func readAt(file unsafe.Pointer, fd int, p []byte, offset int64) int {
	o := opened(fd)
	if o == nil || unsafe.Pointer(o) != file {
		return -1
	}
	bubble := leaveBubble()
	n, errno := o.ReadAt(p, offset)
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1
	}
	return n
}

//go:linkname writeAt
func writeAt(file unsafe.Pointer, fd int, p []byte, offset int64) int {
	o := opened(fd)
	if o == nil || unsafe.Pointer(o) != file {
		return -1
	}
	bubble := leaveBubble()
	n, errno := o.WriteAt(p, offset)
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1
	}
	return n
}

// enterWith enters Loam for callers that do not use the hook in package syscall: see runtime/loam_hook.go.
//
//go:linkname enterWith runtime.loamEnterWith
func enterWith(p unsafe.Pointer) (bubble unsafe.Pointer, ok, onStack bool)

// hostRead and hostWrite are the toolchain's own read and write.
//
//go:linkname hostRead syscall.linuxRead
func hostRead(fd int, p []byte) (n int, err error)

//go:linkname hostWrite syscall.linuxWrite
func hostWrite(fd int, p []byte) (n int, err error)
