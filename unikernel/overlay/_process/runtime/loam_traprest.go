package runtime

// Trapped calls at points where no goroutine can wait for a result (loam_trap.go), in a Linux process. The
// call that ends the program is made; all others fail with ENOSYS.

const loamExitGroup = 231 // number of exit_group(2), which ends the program

// loamRest serves a trapped call at once: it makes exit_group(2), and all other calls fail with ENOSYS.
//
//go:nowritebarrierrec
func loamRest(c *sigctxt) {
	if r := c.regs(); r.rax == loamExitGroup {
		exit(int32(r.rdi))
	} else {
		r.rax = loamENOSYS
	}
}
