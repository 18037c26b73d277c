package unikernel

import (
	"os"
	"syscall"
	"unsafe"
)

// memoryFile creates an anonymous file in memory: memfd_create(2).
func memoryFile(name string) (*os.File, error) {
	const memfdCreate, cloexec = 319, 1
	b, err := syscall.BytePtrFromString(name)
	if err != nil {
		return nil, err
	}
	// Safety: b is a NUL-terminated string and lives until the call returns.
	fd, _, errno := syscall.Syscall(memfdCreate, uintptr(unsafe.Pointer(b)), cloexec, 0)
	if errno != 0 {
		return nil, errno
	}
	return os.NewFile(fd, name), nil
}
