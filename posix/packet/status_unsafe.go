package packet

import (
	"sync/atomic"
	"unsafe"
)

// Status returns the word at the start of b, in memory that the program maps and polls without system
// calls. A program that sees a stored value also sees everything written before the store.
//
// Safety: b has at least four bytes and starts at a multiple of four. All slots and blocks do.
func Status(b []byte) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[:4])))
}
