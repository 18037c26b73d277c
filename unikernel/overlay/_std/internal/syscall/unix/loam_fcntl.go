package unix

import "syscall"

// Loam's descriptors are loamFDBase and the loamFDSpan-1 numbers above it.
const (
	loamFDBase = 1 << 24
	loamFDSpan = 1 << 24
)

// Fcntl goes to Loam by the door in package syscall; the toolchain's own goes
// straight to the runtime, past it.
func Fcntl(fd int, cmd int, arg int) (int, error) {
	if uint(fd)-loamFDBase >= loamFDSpan {
		return linuxFcntl(fd, cmd, arg)
	}
	r, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(cmd), uintptr(arg))
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}
