//go:build linux

package method

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls here are made without telling the scheduler: they never block. The
// telling costs as much as a tenth of a short datagram's way out, and a call of
// more than 20 µs, as for a batch, would have the scheduler give the processor to
// another thread. So the collector waits for them, some 100 µs at the most.

// sendFlags are those of send.
const sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL

// send is send(2) of b, which is not empty, without waiting. It goes past the function of
// package unix, which adds a return: see sendAgain.
//
// Safety: the kernel reads b during the call only.
func send(fd int, b []byte) unix.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), sendFlags, 0, 0)
	return errno
}

// kick is send(2) of nothing on a packet socket with a ring: the kernel sends what
// is in the ring.
func kick(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}
