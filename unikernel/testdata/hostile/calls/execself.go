package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["execself"] = tryExecself }

// tryExecself executes the program's own file again, by a descriptor.
func tryExecself() {
	for fd := range uintptr(32) {
		for _, way := range attack.Ways {
			way(322, fd, attack.String(""), attack.Words(attack.String("again"), 0), attack.Words(0), 0x1000, 0)
		}
	}
}
