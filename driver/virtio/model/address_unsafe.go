package model

import "unsafe"

// addressOf is where b is, as a number.
func addressOf(b []byte) uint64 {
	// Safety: the number is a name only, and never becomes a pointer again.
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
