package main

import (
	"syscall"
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["int80"] = tryInt80 }

// tryInt80 opens and creates files by 32-bit system calls (int 0x80).
func tryInt80() {
	low := lowString(attack.Mark)
	attack.Syscall32(8, low, 0o666, 0)
	attack.Syscall32(5, low, 0x41, 0o666)
}

// lowString copies a string to an address below 4 GiB, for 32-bit calls.
func lowString(s string) uintptr {
	const fixed = 0x10
	at := attack.Syscall(syscall.SYS_MMAP, 0x10000000, 4096, 3, 0x22|fixed, ^uintptr(0), 0)
	if at < 0 {
		return 0
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(uintptr(at))), 4096), s)
	return uintptr(at)
}
