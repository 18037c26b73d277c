package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["shm"] = tryShm }

// tryShm creates shared memory and a message queue of System V, and a message queue of POSIX.
func tryShm() {
	for _, way := range attack.Ways {
		if id := way(29, 0x10a3, 4096, 0o666, 0, 0, 0); id >= 0 {
			println("shared memory of the host")
		}
		if id := way(68, 0x10a3, 0o666, 0, 0, 0, 0); id >= 0 {
			println("a queue of the host")
		}
		way(240, attack.String("loam-hostile"), 0x42, 0o666, 0, 0, 0)
	}
}
