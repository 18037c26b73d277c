package runtime

// startpanic_m begins a crash, as Go's version does. If a goroutine's stack has its maximum size, which depends on the
// machine's memory (unikernel/rt/machine/memory.go), it prints a hint.
func startpanic_m() bool {
	const largest = 1000000000 // maximum stack size of a Go program on a host with enough memory, in bytes
	if gp := getg().m.curg; gp != nil && maxstacksize < largest && 2*(gp.stack.hi-gp.stack.lo) > maxstacksize {
		print("loam: a goroutine's stack may use a quarter of the machine's memory; unless the recursion has no end, give the machine more (-m)\n")
	}
	return linuxStartpanic_m()
}
