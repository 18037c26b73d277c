package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["execve"] = tryExecve }

// tryExecve starts a shell by execve(2).
func tryExecve() {
	for _, way := range attack.Ways {
		attack.Exec(func(path, args, env uintptr) int { return way(syscall.SYS_EXECVE, path, args, env, 0, 0, 0) })
	}
}
