package e1000e

import (
	"sync/atomic"
	"unsafe"
)

// word returns eight bytes of b, at a multiple of 8, as an atomic number: the card writes them while the driver reads.
// Memory is little-endian, as amd64 is.
func word(b []byte, at int) *atomic.Uint64 {
	// Safety: the eight bytes are inside b, since the slice expression checks that; rings are allocated at a multiple of
	// a page, and at is a multiple of 8.
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b[at : at+8])))
}
