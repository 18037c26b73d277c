package model

import (
	"sync/atomic"
	"unsafe"
)

// word is four bytes of memory as a number that the driver reads meanwhile.
func word(b []byte, at int) *atomic.Uint32 {
	// Safety: the four bytes lie inside b; queues are at a multiple of a page.
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[at : at+4])))
}
