package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["bpf"] = tryBpf }

// tryBpf loads programs into the kernel, counts its events and handles faults.
func tryBpf() {
	for _, way := range attack.Ways {
		for _, number := range []uintptr{321, 298, 323, 313, 175, 248, 250, 246, 169} {
			if r := way(number, 0, attack.Words(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 128, 0, 0, 0); r > 0 {
				println("call", number, "works")
			}
		}
	}
}
