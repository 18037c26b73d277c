package unix

import "syscall"

// Fcntl goes by the door in package syscall; the toolchain's own goes straight to
// the runtime, past it.
func Fcntl(fd int, cmd int, arg int) (int, error) {
	r, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(cmd), uintptr(arg))
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}
