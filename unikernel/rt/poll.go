package rt

import (
	"unsafe" // go:linkname requires this import too

	"loam/posix"
)

// Readiness: how a file of Loam wakes a goroutine that waits in the runtime's poller (internal/poll).

// pollReady readies the goroutines that wait to read or write at a poll descriptor. If none waits, it
// records the readiness for the next one. A stale seq is ignored. seq identifies one use of pd: the runtime
// reuses poll descriptors.
//
//go:linkname pollReady runtime.loamPollReady
func pollReady(pd, seq uintptr, read, write bool)

// resumed implements stack.Config.Resumed. pollReady queues a goroutine that a stack loop readies on the
// loop's own thread; a loop calls resumed when it continues, so that another thread can run that goroutine.
//
//go:linkname resumed runtime.loamResumed
func resumed()

// Events that the runtime's netpoll counts as readable and as writable.
const (
	readEvents  = posix.PollIn | posix.PollRdHup | posix.PollHup | posix.PollErr
	writeEvents = posix.PollOut | posix.PollHup | posix.PollErr
)

// pollOpen attaches the poll descriptor pd, in its use seq, to the file fd. Readiness that exists already
// is reported at once, since a connection may be established before the program waits for it. pollOpen
// returns an errno. For a host connection it returns HostFD plus the host's descriptor, which the runtime
// then adds to epoll itself.
//
//go:linkname pollOpen
func pollOpen(fd uintptr, pd unsafe.Pointer, seq uintptr) uintptr {
	// The first field of a poll descriptor is Loam's (runtime.loamArrivals), and poll descriptors are never
	// freed.
	if n, ok := process.AttachHost(int(fd), (*posix.Arrivals)(pd)); ok {
		return HostFD + uintptr(n)
	}
	return uintptr(process.Attach(int(fd), func(e posix.Events) {
		read, write := e&readEvents != 0, e&writeEvents != 0
		if read || write {
			pollReady(uintptr(pd), seq, read, write)
		}
	}))
}

// pollClose detaches fd from its poll descriptor. Its result is encoded like pollOpen's.
//
//go:linkname pollClose
func pollClose(fd uintptr) uintptr {
	if n, ok := process.DetachHost(int(fd)); ok {
		return HostFD + uintptr(n)
	}
	return uintptr(process.Detach(int(fd)))
}
