//go:build linux

package afpacket

import (
	"sync/atomic"
	"unsafe"
)

// The one word of a slot or a block that says whose it is, in memory that is
// shared with the kernel. Safety: off is a multiple of four inside of mem, which
// is page aligned and stays mapped while its ring is open.

// loadWord reads it; what the kernel wrote before it is seen after.
func loadWord(mem []byte, off int) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&mem[off])))
}

// storeWord writes it; what was written before it is seen by the kernel.
func storeWord(mem []byte, off int, v uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&mem[off])), v)
}
