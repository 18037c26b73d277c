package runtime

// Trapped calls at points where no goroutine can wait for a result (loam_trap.go), in a Linux process. The
// call that ends the program is made; all others fail with ENOSYS.

const loamExitGroup = 231 // exit_group(2)

// loamRest serves such a call at once.
//
//go:nowritebarrierrec
func loamRest(c *sigctxt) {
	if r := c.regs(); r.rax == loamExitGroup {
		exit(int32(r.rdi))
	} else {
		r.rax = loamENOSYS
	}
}
