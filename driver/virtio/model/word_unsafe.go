package model

import (
	"sync/atomic"
	"unsafe"
)

// word returns four bytes of memory as a 32-bit number that device and driver access atomically.
func word(b []byte, at int) *atomic.Uint32 {
	// Safety: the four bytes lie inside b; the standard aligns rings.
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[at : at+4])))
}
