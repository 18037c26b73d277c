package virtio

import (
	"sync/atomic"
	"unsafe"
)

// word returns the four bytes of b at offset at, a multiple of 4, as one number: a flags field in the lower half and an
// index in the upper half. Driver and device both access it. In memory it is little-endian, as on amd64.
func word(b []byte, at int) *atomic.Uint32 {
	// Safety: the four bytes lie inside b, since the slice expression checks that; rings are allocated at a
	// multiple of 4, and at is one.
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[at : at+4])))
}
