package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["iopl"] = tryIopl }

// tryIopl requests access to the I/O ports of the machine.
func tryIopl() {
	for _, way := range attack.Ways {
		if way(172, 3, 0, 0, 0, 0, 0) == 0 || way(173, 0, 1024, 1, 0, 0, 0) == 0 {
			println("ports")
		}
		way(154, 1, attack.Words(0, 0), 16, 0, 0, 0)
	}
}
