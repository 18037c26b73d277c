package kernel

import (
	"unsafe"

	"loam/boot"
)

// windowAddress is boot.Window as a number of the processor's.
const windowAddress uintptr = boot.Window

// physical is memory by physical address, from 0 up to a size.
func physical(size int) []byte {
	// Safety: the page tables show the first boot.WindowAtBoot bytes there, and
	// what no memory answers to reads as ones. The detour by &addr is for vet.
	addr := windowAddress
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}
