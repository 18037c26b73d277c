package model

import "unsafe"

// addressOf returns the address of b as a number.
func addressOf(b []byte) uint64 {
	// Safety: the number is only used as a map key and is never converted to a pointer.
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
