package rt

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"loam/posix"
)

// Read and write as they come from packages syscall and internal/poll, without the table
// of calls: see loam_transfer.go and loam_immediate.go of the overlay. Programs make no
// calls more often.
//
// The handle of a file that is the same at every offset, such as /dev/null, is asked at
// once: it needs nothing of what the others do, and fails without having done anything.

// served is the process while its calls are served: nil before the door opens, and from
// when the program ends.
var served atomic.Pointer[posix.Process]

// opened is an open file of the program's. It is nil if there is none, and then the
// longer way says why, which also takes the lower half of fd alone, as Linux does.
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

// readAny is read of any descriptor, also of the host's. Memory on a stack is copied,
// unless the file takes it: what is behind others may leave a slice where other
// goroutines see it while this one waits.
func readAny(fd int, p []byte) (n int, err error) {
	if isHosts(fd) {
		return hostRead(fd, p)
	}
	at := unsafe.Pointer(unsafe.SliceData(p))
	bubble, ok, onStack := enterWith(at)
	if !ok {
		return -1, syscall.ENOSYS // as the door answers
	}
	if ending.Load() {
		park()
	}
	fd = int(int32(fd))
	errno := syscall.EBADF
	switch o := process.Opened(fd); {
	case o == nil:
	case onStack && !o.TakesStack():
		n, errno = results(sysRead(fd, at, len(p)))
	default:
		n, errno = o.Read(p)
	}
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1, errno
	}
	return n, nil
}

// writeAny is likewise write.
func writeAny(fd int, p []byte) (n int, err error) {
	if isHosts(fd) {
		return hostWrite(fd, p)
	}
	at := unsafe.Pointer(unsafe.SliceData(p))
	bubble, ok, onStack := enterWith(at)
	if !ok {
		return -1, syscall.ENOSYS
	}
	if ending.Load() {
		park()
	}
	fd = int(int32(fd))
	errno := syscall.EBADF
	switch o := process.Opened(fd); {
	case o == nil:
	case onStack && !o.TakesStack():
		n, errno = results(sysWrite(fd, at, len(p)))
	default:
		n, errno = o.Write(p)
	}
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1, errno
	}
	return n, nil
}

// results is what a decoder answered.
func results(r1, errno uintptr) (int, syscall.Errno) { return int(r1), syscall.Errno(errno) }

// isHosts reports whether a descriptor is the host's: one of Loam's own links, or any
// before Loam serves calls.
func isHosts(fd int) bool { return !serving || uint32(fd)-HostFD < HostFD }

// immediate names the open file behind a descriptor for readFrom and writeTo, or is nil if
// it is not Immediate.
//
//go:linkname immediate
func immediate(fd int) unsafe.Pointer {
	if o := opened(fd); o != nil && o.Immediate() {
		return unsafe.Pointer(o)
	}
	return nil
}

// readFrom reads from an open file that immediate named, if fd still leads to it. The
// number may lead to another one by now, if the program closed it, or has used dup2. -1:
// nothing was done.
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
	n, errno := o.Read(p)
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1
	}
	return n
}

// writeTo is likewise for writing.
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
	n, errno := o.Write(p)
	if bubble != nil {
		enterBubble(bubble)
	}
	if errno != 0 {
		return -1
	}
	return n
}

// readAt and writeAt are likewise pread(2) and pwrite(2).
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

// enterWith is the way into Loam for who comes past the door: see runtime/loam_hook.go.
//
//go:linkname enterWith runtime.loamEnterWith
func enterWith(p unsafe.Pointer) (bubble unsafe.Pointer, ok, onStack bool)

// hostRead and hostWrite are the toolchain's own.
//
//go:linkname hostRead syscall.linuxRead
func hostRead(fd int, p []byte) (n int, err error)

//go:linkname hostWrite syscall.linuxWrite
func hostWrite(fd int, p []byte) (n int, err error)
