package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["sigio"] = trySigio }

// trySigio makes the kernel signal another process when data arrives (F_SETOWN).
func trySigio() {
	for _, way := range attack.Ways {
		for fd := range uintptr(16) {
			way(syscall.SYS_FCNTL, fd, syscall.F_SETOWN, attack.Victim(), 0, 0, 0)
			way(syscall.SYS_FCNTL, fd, 10, 9, 0, 0, 0)
			way(syscall.SYS_FCNTL, fd, syscall.F_SETFL, syscall.O_ASYNC, 0, 0, 0)
		}
	}
}
