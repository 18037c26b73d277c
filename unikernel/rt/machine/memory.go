package machine

import (
	"os"
	"runtime/debug"
	"syscall"
)

// On a host the runtime may take memory as if there were no end to it: the host
// swaps, or kills. Here the end is the end of the machine. So the collector is told
// how much there is, unless the user has said how much it may take, and a stack that
// grows for ever meets Go's own limit before that.
func limitMemory() {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return
	}
	free := int64(s.Freeram) * int64(s.Unit)
	const inTenths, parts = 8, 4 // the rest is for page tables, and for what is not collected yet
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(free / 10 * inTenths)
	}
	if limit := int(free / parts); limit < maxStack {
		debug.SetMaxStack(limit)
	}
}

// maxStack is what the runtime sets for itself on a machine of 64 bits.
const maxStack = 1_000_000_000
