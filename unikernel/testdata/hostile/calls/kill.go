package main

import (
	"os"
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["kill"] = tryKill }

// tryKill signals a process, its parent, process groups and all processes (-1).
func tryKill() {
	for _, way := range attack.Ways {
		for _, pid := range []uintptr{attack.Victim(), ^uintptr(attack.Victim()) + 1, uintptr(os.Getppid())} {
			way(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
			way(syscall.SYS_TGKILL, pid, pid, uintptr(syscall.SIGKILL), 0, 0, 0)
			way(syscall.SYS_TKILL, pid, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		}
		way(syscall.SYS_KILL, ^uintptr(0), uintptr(syscall.SIGTERM), 0, 0, 0, 0)
		way(syscall.SYS_KILL, 0, uintptr(syscall.SIGURG), 0, 0, 0, 0)
	}
}
