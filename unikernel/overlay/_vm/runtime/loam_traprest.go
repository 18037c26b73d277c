package runtime

// Trapped calls at points where no goroutine can wait for a result (loam_trap.go), in a virtual machine.
// Loam's kernel serves them; it has no files.

import "internal/runtime/syscall/linux"

// loamRest serves a trapped call at once: it passes the call to Loam's kernel.
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
