package nvme

import (
	"sync/atomic"
	"unsafe"
)

// word returns four bytes of b, at a multiple of 4, as an atomic number: the controller writes them
// while the driver reads. Memory is little-endian, as amd64 is.
func word(b []byte, at int) *atomic.Uint32 {
	// Safety: the four bytes are inside b, since the slice expression checks that; queues are
	// allocated at a multiple of a page, and at is a multiple of 4.
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[at : at+4])))
}
