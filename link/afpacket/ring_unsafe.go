//go:build linux

package afpacket

import (
	"sync/atomic"
	"unsafe"
)

// The status word of a slot or block, in memory shared with the kernel. It says whether the kernel
// or the program owns the slot or block.
//
// Safety: off is a multiple of four inside mem. mem is page-aligned and stays mapped while its ring
// is open.

// loadWord reads a status word. Everything that the kernel wrote before it is visible afterwards.
func loadWord(mem []byte, off int) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&mem[off])))
}

// storeWord writes a status word. The kernel sees everything that was written before.
func storeWord(mem []byte, off int, v uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&mem[off])), v)
}
