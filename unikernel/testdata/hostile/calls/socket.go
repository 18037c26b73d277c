package main

import (
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["socket"] = trySocket }

// trySocket connects to a port of the host's loopback, by every address family.
func trySocket() {
	port := attack.Port()
	address := []byte{2, 0, byte(port >> 8), byte(port), 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, way := range attack.Ways {
		fd := uintptr(way(41, 2, 1, 0, 0, 0, 0))
		way(42, fd, uintptr(unsafe.Pointer(&address[0])), 16, 0, 0, 0)
		for fd := range uintptr(16) {
			way(44, fd, uintptr(unsafe.Pointer(&address[0])), 1, 0x20000000, uintptr(unsafe.Pointer(&address[0])), 16)
			way(42, fd, uintptr(unsafe.Pointer(&address[0])), 16, 0, 0, 0)
		}
	}
}
