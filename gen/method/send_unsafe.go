//go:build linux

package method

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls in this file do not notify the Go scheduler. This is allowed because they never block. A
// notification costs up to a tenth of the time to send a short datagram. And during a call longer than 20 µs, such as
// one for a batch, the scheduler would give the processor to another thread. The drawback is that the garbage collector
// waits for these calls, at most about 100 µs.

// sendFlags are the flags with which the function send calls send(2).
const sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL

// send is a non-blocking send(2) of b, which must not be empty.
//
// Safety: the kernel reads b only during the call.
func send(fd int, b []byte) unix.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), sendFlags, 0, 0)
	return errno
}

// sendAgain sends b, which must not be empty, repeatedly; times is the maximum number of sends. It stops at the first
// error and returns its errno, and the number of successful sends.
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
