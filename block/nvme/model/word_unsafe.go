package model

import (
	"sync/atomic"
	"unsafe"
)

// word returns four bytes of memory that the driver reads at the same time.
func word(b []byte, at int) *atomic.Uint32 {
	// Safety: the four bytes lie inside b; queues are at a multiple of a page.
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[at : at+4])))
}
