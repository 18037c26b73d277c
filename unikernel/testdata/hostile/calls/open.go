package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["open"] = tryOpen }

// tryOpen opens files by open(2), in every way to make a system call.
func tryOpen() {
	for _, way := range attack.Ways {
		attack.Write(way, func(path, flags uintptr) int { return way(syscall.SYS_OPEN, path, flags, 0o666, 0, 0, 0) })
	}
}
