package main

import (
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["namespaces"] = tryNamespaces }

// tryNamespaces creates new namespaces and enters existing ones, in which the program would be root.
func tryNamespaces() {
	for _, way := range attack.Ways {
		for _, kind := range []uintptr{0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000} {
			if way(272, kind, 0, 0, 0, 0, 0) == 0 { // unshare
				println("unshare works")
			}
			for fd := range uintptr(16) {
				if way(308, fd, kind, 0, 0, 0, 0) == 0 {
					println("setns works")
				}
			}
			arguments := [11]uint64{uint64(kind)}
			if child := way(435, uintptr(unsafe.Pointer(&arguments)), 88, 0, 0, 0, 0); child == 0 { // clone3
				attack.Write(way, func(path, flags uintptr) int { return way(2, path, flags, 0o666, 0, 0, 0) })
				way(231, 0, 0, 0, 0, 0, 0)
			}
		}
	}
}
