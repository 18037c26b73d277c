//go:build linux && amd64

package mem_test

import (
	"syscall"
	"unsafe"

	"loam/abi/linux"
)

// mincore calls mincore(2). Safety: the kernel writes a byte for each page of length, and present is as long.
func mincore(addr, length uint64, present []byte) error {
	_, _, e := syscall.Syscall(linux.SYS_MINCORE, uintptr(addr), uintptr(length), uintptr(unsafe.Pointer(&present[0])))
	if e != 0 {
		return e
	}
	return nil
}
