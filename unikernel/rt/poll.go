package rt

import (
	"unsafe" // and for go:linkname

	"loam/posix"
)

// Readiness: how a file of ours wakes a goroutine that waits in the poller of
// the runtime (internal/poll).

// pollReady readies the goroutines that wait to read or write at a poll
// descriptor, and leaves a mark when there is none. An old seq is ignored.
//
//go:linkname pollReady runtime.loamPollReady
func pollReady(pd, seq uintptr, read, write bool)

// resumed is stack.Config.Resumed: pollReady leaves what a loop of the stack readies to
// the thread of that loop.
//
//go:linkname resumed runtime.loamResumed
func resumed()

// What the runtime's netpoll takes for readable and writable.
const (
	readEvents  = posix.PollIn | posix.PollRdHup | posix.PollHup | posix.PollErr
	writeEvents = posix.PollOut | posix.PollHup | posix.PollErr
)

// pollOpen ties the poll descriptor pd, in its life seq, to a file. What is
// ready already is told at once: a connection may have come about before the
// program begins to wait for it. It returns an errno, or HostFD and more for a
// connection of the host's: its descriptor, which the runtime is to wait for itself.
//
//go:linkname pollOpen
func pollOpen(fd uintptr, pd unsafe.Pointer, seq uintptr) uintptr {
	// The first field of a poll descriptor is ours (runtime.loamArrivals), and poll descriptors stay.
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

// pollClose unties it, and returns the same.
//
//go:linkname pollClose
func pollClose(fd uintptr) uintptr {
	if n, ok := process.DetachHost(int(fd)); ok {
		return HostFD + uintptr(n)
	}
	return uintptr(process.Detach(int(fd)))
}
