package model

import (
	"sync/atomic"
	"unsafe"
)

// word returns eight bytes of b, at a multiple of 8, as an atomic number: the driver reads them while the card writes.
func word(b []byte, at int) *atomic.Uint64 {
	// Safety: the eight bytes are inside b, since the slice expression checks that; a driver's rings are aligned.
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b[at : at+8])))
}
