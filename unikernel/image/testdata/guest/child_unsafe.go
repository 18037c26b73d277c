package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// controlOfChild starts a thread by a SYSCALL instruction of its own, with a stack that
// ends at an address. The thread stores the control register of its vector unit, and 1
// behind it, and ends.
//
//go:noescape
func controlOfChild(result *uint64, stack uintptr)

// children have the vector registers of the thread that has started them, as on Linux:
// they are not interrupted by what is not exact, unless that thread is.
func children() {
	const count, masks = 20, 0x1f80
	var stack [4096]byte
	for range count {
		var result uint64
		controlOfChild(&result, (uintptr(unsafe.Pointer(&stack))+uintptr(len(stack)))&^15)
		for atomic.LoadUint64(&result)>>32 == 0 {
			runtime.Gosched()
		}
		if control := uint32(result); control&masks != masks {
			fmt.Printf("a child begins with MXCSR %#x\n", control)
		}
	}
	fmt.Println("children", count)
}
