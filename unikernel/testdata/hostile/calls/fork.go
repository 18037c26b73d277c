package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["fork"] = tryFork }

// tryFork creates processes by fork(2), vfork(2), clone(2) and clone3(2). The processes create Mark and start a shell.
func tryFork() {
	for _, way := range attack.Ways {
		for _, made := range []int{
			way(syscall.SYS_FORK, 0, 0, 0, 0, 0, 0),
			way(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0),
			way(435, attack.Words(0, 0, 0, 0, 17, 0, 0, 0), 64, 0, 0, 0, 0),
		} {
			if made == 0 {
				attack.Exec(func(path, args, env uintptr) int { return way(syscall.SYS_EXECVE, path, args, env, 0, 0, 0) })
			}
		}
	}
}
