package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["execveat"] = tryExecveat }

// tryExecveat starts a shell by execveat(2), relative to every descriptor that the program may have been started with.
func tryExecveat() {
	for fd := range uintptr(32) {
		for _, way := range attack.Ways {
			attack.Exec(func(path, args, env uintptr) int { return way(322, fd, path, args, env, 0x1000, 0) })
		}
	}
}
