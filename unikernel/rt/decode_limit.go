package rt

import (
	"sync"
	"syscall"
	"unsafe" // for the limits that the program points to
)

// Decoders of calls about limits. They are the kernel's, but for that of core dumps in a
// process: a sealed one leaves none (package seal), whatever the program sets, and gets
// back what it has set.

// coreLimit is what the program has set, with the bits inverted: zero is no limit.
var coreLimit struct {
	mu         sync.Mutex // guards what follows
	soft, hard uint64
}

//go:noinline
func sysPrlimit(pid, resource int, set, get unsafe.Pointer) (uintptr, uintptr) {
	if resource != syscall.RLIMIT_CORE || pid != 0 && pid != syscall.Getpid() || kernelIsOurs {
		r, _, errno := hostCall(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource), uintptr(set), uintptr(get), 0, 0)
		return r, uintptr(errno)
	}
	// Safety: both are nil or addresses of a struct rlimit64 (prlimit(2)).
	return fail(limitCore((*syscall.Rlimit)(set), (*syscall.Rlimit)(get)))
}

// limitCore is prlimit(2) of RLIMIT_CORE, by a user who may not raise what he has lowered.
func limitCore(set, get *syscall.Rlimit) syscall.Errno {
	c := &coreLimit
	c.mu.Lock()
	defer c.mu.Unlock()
	was := syscall.Rlimit{Cur: ^c.soft, Max: ^c.hard}
	if set != nil {
		switch {
		case set.Cur > set.Max:
			return syscall.EINVAL
		case set.Max > was.Max:
			return syscall.EPERM
		}
		c.soft, c.hard = ^set.Cur, ^set.Max
	}
	if get != nil {
		*get = was
	}
	return 0
}
