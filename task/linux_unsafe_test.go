package task

import (
	"syscall"
	"testing"
	"unsafe"

	"loam/abi/linux"
)

// memfdOnLinux returns a memfd of the host that can be sealed.
func memfdOnLinux(t *testing.T) int {
	t.Helper()
	name := []byte("name\x00")
	// Safety: the kernel reads the name during the call, and name is alive until then.
	fd, _, errno := syscall.Syscall(linux.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(&name[0])), linux.MFD_ALLOW_SEALING, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return int(fd)
}
