//go:build linux

package fd

import (
	"syscall"
	"unsafe"
)

// pollOut is POLLOUT of poll(2).
const pollOut = 4

// pollFD is struct pollfd of poll(2).
type pollFD struct {
	fd      int32
	events  int16
	revents int16
}

// Writable reports, without waiting, whether descriptor fd is writable or has an error that a write
// would return. It is the retry function of a Room whose queue has no pending write of its own.
func Writable(fd uintptr) bool {
	p := pollFD{fd: int32(fd), events: pollOut}
	var now syscall.Timespec
	// Safety: the kernel accesses p and now only during the call.
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && n > 0
}
