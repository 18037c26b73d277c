package model

import (
	"sync/atomic"
	"unsafe"
)

// word is four bytes of memory as a number that the driver reads and writes too.
func word(b []byte, at int) *atomic.Uint32 {
	// Safety: the four bytes lie inside b; the standard aligns rings.
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[at : at+4])))
}
