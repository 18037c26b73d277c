//go:build linux

package fd

import (
	"syscall"
	"unsafe"
)

// Reading and writing descriptors that do not block, without telling the scheduler:
// for a call that never waits there is nothing that it could do meanwhile, and telling
// it wakes the runtime's monitor thread whenever the process was at rest, which costs
// as much as the call. Only the collector has to wait until the call is over.
//
// Safety, for every use of unsafe here: the kernel uses b during the call only.

// Read is read(2) of a descriptor that does not block. Errors: syscall.Errno.
func Read(fd uintptr, b []byte) (int, error) {
	return result(syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))))
}

// Write is write(2) of a descriptor that does not block. Errors: syscall.Errno.
func Write(fd uintptr, b []byte) (int, error) {
	return result(syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))))
}

// Send is send(2) to a socket, which does not wait, even if the descriptor would
// block, and raises no signal. Errors: syscall.Errno.
func Send(fd uintptr, b []byte) (int, error) {
	const flags = syscall.MSG_NOSIGNAL | syscall.MSG_DONTWAIT
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	return result(n, 0, errno)
}

func result(n, _ uintptr, errno syscall.Errno) (int, error) {
	switch errno {
	case 0:
		return int(n), nil
	case syscall.EAGAIN: // the boxed errors of package syscall: these are frequent
		return 0, errAgain
	}
	return 0, errno
}

var errAgain error = syscall.EAGAIN
