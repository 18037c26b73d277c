package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["openat"] = tryOpenat }

// tryOpenat opens files by openat(2).
func tryOpenat() {
	for _, way := range attack.Ways {
		attack.Write(way, func(path, flags uintptr) int { return way(syscall.SYS_OPENAT, attack.Here, path, flags, 0o666, 0, 0) })
	}
}
