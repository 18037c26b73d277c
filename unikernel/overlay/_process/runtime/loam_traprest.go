package runtime

// Calls that have trapped where no goroutine can wait for an answer (loam_trap.go), in
// a process of Linux: the call that ends the program is made, and others are not.

const loamExitGroup = 231 // a system call

// loamRest serves a call at once.
//
//go:nowritebarrierrec
func loamRest(c *sigctxt) {
	if r := c.regs(); r.rax == loamExitGroup {
		exit(int32(r.rdi))
	} else {
		r.rax = loamENOSYS
	}
}
