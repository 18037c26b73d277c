package posix

import (
	"syscall"
	"unsafe"

	"loam/abi/linux"
	"loam/posix/file"
)

// linuxSocket is a socket of the host's kernel.
type linuxSocket int

func (s linuxSocket) set(level, name int, value []byte) Errno {
	return file.ToErrno(syscall.SetsockoptString(int(s), level, name, string(value)))
}

func (s linuxSocket) get(level, name int, request []byte) ([]byte, Errno) {
	b := append(request, make([]byte, 4096)...) // Linux writes more than the given length
	n := uint32(len(request))
	_, _, errno := syscall.Syscall6(linux.SYS_GETSOCKOPT, uintptr(s), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
	return b[:n], errno
}
