package rt

import (
	"os"
	"syscall"

	"loam/posix"
)

// Trapped serves a call as the kernel would: the result is what it leaves in RAX. A
// call that is the host's has trapped because the host must not serve it.
func Trapped(number, a1, a2, a3, a4, a5, a6 uintptr) uintptr {
	if number == syscall.SYS_EXIT_GROUP {
		os.Exit(int(int32(a1)))
	}
	r1, errno := uintptr(0), uintptr(syscall.ENOSYS)
	if number < uintptr(len(takes)) && takes[number] != uint8(posix.TakesNone) {
		r1, errno = call(number, a1, a2, a3, a4, a5, a6)
	}
	if errno != 0 {
		return -errno
	}
	return r1
}
