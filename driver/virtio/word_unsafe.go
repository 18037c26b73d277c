package virtio

import (
	"sync/atomic"
	"unsafe"
)

// word returns four bytes of b as one number. They begin at the offset at, a multiple of 4. The number
// consists of a flags field in the lower half and an index in the upper half. Driver and device both
// access it. In memory it is little-endian, as on amd64.
func word(b []byte, at int) *atomic.Uint32 {
	// Safety: the four bytes lie inside b, since the slice expression checks that; rings are
	// allocated at a multiple of 4, and the offset at is such a multiple.
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[at : at+4])))
}
