//go:build linux

package method

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls in this file bypass the scheduler's entry and exit of system calls, which is allowed because they never
// block. Notifying the scheduler costs up to a tenth of the time to send a short datagram. During a call longer
// than 20 µs, such as for a batch, the scheduler would give the processor to another thread. The drawback: the
// garbage collector waits for these calls, at most about 100 µs.

// sendFlags are the flags of send.
const sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL

// send is a non-blocking send(2) of b, which must not be empty.
//
// Safety: the kernel reads b only during the call.
func send(fd int, b []byte) unix.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), sendFlags, 0, 0)
	return errno
}

// sendAgain sends b, which must not be empty, up to times times. It stops at the first failure and returns its
// errno and the number of successful sends.
func sendAgain(fd int, b []byte, times int) (sent int, errno unix.Errno) {
	for ; sent < times; sent++ {
		if errno = send(fd, b); errno != 0 {
			break
		}
	}
	return sent, errno
}

// kick makes the kernel send the frames in the ring of a packet socket, by an empty send(2).
func kick(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}
