package kernel

import (
	"unsafe"

	"loam/exec/vdso"
)

// dataAt returns the vdso.Data at an address in the window.
func dataAt(addr uintptr) *vdso.Data {
	// Safety: the caller owns the page, and the window maps it. The detour by &addr is for vet, which cannot know that
	// addr holds a pointer.
	return *(**vdso.Data)(unsafe.Pointer(&addr))
}
