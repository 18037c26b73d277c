package posix

import (
	"sync/atomic"
	"unsafe"
)

// status is the word at the beginning of b, of memory that a program maps and looks at without
// a call: what was written before it is stored is seen by who has seen it.
//
// Safety: b has four bytes at least, which begin at a multiple of four, as all that memory is
// divided does.
func status(b []byte) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b[:4])))
}
