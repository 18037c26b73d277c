//go:build linux

package fd

import (
	"syscall"
	"unsafe"
)

// Reading and writing non-blocking descriptors without notifying the Go scheduler. During a call
// that never waits, the scheduler has nothing else to do. Notifying it wakes the runtime's monitor
// thread if the process was idle, which costs as much as the call. The only effect is that garbage
// collection waits until the call returns.
//
// Safety, for every use of unsafe here: the kernel uses b only during the call.

// Read calls read(2) on a non-blocking descriptor. Errors are of type syscall.Errno.
func Read(fd uintptr, b []byte) (int, error) {
	return result(syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))))
}

// Write calls write(2) on a non-blocking descriptor. Errors are of type syscall.Errno.
func Write(fd uintptr, b []byte) (int, error) {
	return result(syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))))
}

// Send calls send(2) on a socket. It does not block, even on a blocking descriptor, and raises no
// SIGPIPE. Errors are of type syscall.Errno.
func Send(fd uintptr, b []byte) (int, error) {
	const flags = syscall.MSG_NOSIGNAL | syscall.MSG_DONTWAIT
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	return result(n, 0, errno)
}

func result(n, _ uintptr, errno syscall.Errno) (int, error) {
	switch errno {
	case 0:
		return int(n), nil
	case syscall.EAGAIN: // frequent, and converting an Errno to error may allocate
		return 0, errAgain
	}
	return 0, errno
}

var errAgain error = syscall.EAGAIN
