package unix

import "syscall"

// Fcntl is fcntl(2), through the hook in package syscall. The toolchain's version calls the runtime
// directly.
func Fcntl(fd int, cmd int, arg int) (int, error) {
	r, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(cmd), uintptr(arg))
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}
