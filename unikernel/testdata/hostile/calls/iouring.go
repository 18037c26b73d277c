package main

import (
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["iouring"] = tryIouring }

// tryIouring makes the kernel open a file by io_uring.
func tryIouring() {
	parameters := make([]byte, 120)
	for _, way := range attack.Ways {
		if fd := way(425, 8, uintptr(unsafe.Pointer(&parameters[0])), 0, 0, 0, 0); fd >= 0 {
			println("a ring")
		}
	}
}
