package runtime

// Calls that have trapped where no goroutine can wait for an answer (loam_trap.go), in
// a virtual machine: the kernel is asked, which does not know of files.

import "internal/runtime/syscall/linux"

// loamRest serves a call at once.
//
//go:nowritebarrierrec
func loamRest(c *sigctxt) {
	r := c.regs()
	result, _, errno := linux.Syscall6(uintptr(r.rax), uintptr(r.rdi), uintptr(r.rsi), uintptr(r.rdx), uintptr(r.r10), uintptr(r.r8), uintptr(r.r9))
	if errno != 0 {
		result = -errno
	}
	r.rax = uint64(result)
}
