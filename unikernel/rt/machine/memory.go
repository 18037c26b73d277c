package machine

import (
	"os"
	"runtime/debug"
	"syscall"
)

// limitMemory sets the collector's memory limit, unless the user has set GOMEMLIMIT. On a host the runtime
// may allocate without bound, because the host swaps or kills. Here the machine's memory is all there is.
// limitMemory also lowers the maximum stack size, so that infinite recursion reports a stack overflow
// before memory runs out.
func limitMemory() {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return
	}
	free := int64(s.Freeram) * int64(s.Unit)
	// the limit in tenths of the memory (the rest is for page tables and for garbage that is not collected yet), and the
	// divisor for the stack size
	const inTenths, parts = 8, 4
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(free / 10 * inTenths)
	}
	if limit := int(free / parts); limit < maxStack {
		debug.SetMaxStack(limit)
	}
}

// maxStack is the runtime's own limit on 64-bit systems, in bytes.
const maxStack = 1_000_000_000
