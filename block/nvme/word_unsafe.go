package nvme

import (
	"sync/atomic"
	"unsafe"
)

// word is the four bytes of b at a multiple of 4 as one number, which the controller
// writes while the driver reads. Memory is little-endian, as amd64 is.
func word(b []byte, at int) *atomic.Uint32 {
	// Safety: the four bytes lie inside b, since the slice expression checks that;
	// queues are allocated at a multiple of a page, and at is a multiple of 4.
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[at : at+4])))
}
