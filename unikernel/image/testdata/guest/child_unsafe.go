package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// controlOfChild starts a thread by a SYSCALL instruction of its own. result is the upper end of that thread's
// arguments, and stack the upper end of its stack. The thread stores the control register of its vector unit (MXCSR) at
// result, then stores 1 behind it, and ends.
//
//go:noescape
func controlOfChild(result *uint64, stack uintptr)

// children checks that a new thread has the vector control register of the thread that started it, as on Linux. Inexact
// results therefore do not interrupt it unless they interrupt its parent.
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
