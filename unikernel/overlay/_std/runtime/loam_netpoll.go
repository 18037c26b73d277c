package runtime

// What Loam adds to the runtime: readiness of its descriptors without epoll,
// the test of whether a system call may run as ordinary Go code, and the order
// in which packages are initialised. Read runtime/netpoll.go first.
//
// A descriptor of Loam's never meets epoll. netpollopen hands the poll
// descriptor to Loam, which keeps it beside its own file; whoever makes the
// file ready then readies the goroutine, with the same steps as netpollready
// and netpollgoready, on its own goroutine: no event is copied, and no thread
// waits for it.

import "unsafe"

// Loam's descriptors are loamFDBase and the loamFDSpan-1 numbers above it.
// Linux hands out the lowest free number, so its own never get there.
const (
	loamFDBase = 1 << 24
	loamFDSpan = 1 << 24
)

// loamPollOpen and loamPollClose tie a poll descriptor to a file of Loam's and
// untie it. They run on the goroutine that opens or closes the file, which
// holds no lock of the runtime, and return an errno.
//
//go:linkname loamPollOpen loam/unikernel/rt.pollOpen
func loamPollOpen(fd, pd, seq uintptr) uintptr

//go:linkname loamPollClose loam/unikernel/rt.pollClose
func loamPollClose(fd uintptr) uintptr

func netpollopen(fd uintptr, pd *pollDesc) uintptr {
	if fd-loamFDBase < loamFDSpan {
		bubble := loamLeaveBubble()
		errno := loamPollOpen(fd, uintptr(unsafe.Pointer(pd)), pd.fdseq.Load())
		loamEnterBubble(bubble)
		return errno
	}
	return linuxNetpollopen(fd, pd)
}

func netpollclose(fd uintptr) uintptr {
	if fd-loamFDBase < loamFDSpan {
		bubble := loamLeaveBubble()
		errno := loamPollClose(fd)
		loamEnterBubble(bubble)
		return errno
	}
	return linuxNetpollclose(fd)
}

// loamPollReady says that the file that pollOpen tied to pd, at the time that
// seq names, may be read, written or both. pd outlives the file (poll
// descriptors are never given back), and an old seq is ignored. It must be
// called on an ordinary goroutine.
//
//go:linkname loamPollReady
func loamPollReady(pdaddr, seq uintptr, read, write bool) {
	pd := (*pollDesc)(unsafe.Pointer(pdaddr))
	if pd.fdseq.Load() != seq {
		return
	}
	delta := int32(0)
	var rg, wg *g
	if read {
		rg = netpollunblock(pd, 'r', true, &delta)
	}
	if write {
		wg = netpollunblock(pd, 'w', true, &delta)
	}
	if rg != nil {
		netpollgoready(rg, 0)
	}
	if wg != nil {
		netpollgoready(wg, 0)
	}
	netpollAdjustWaiters(delta)
}

// loamPollInit opens the descriptors of the poller: afterwards it may be too late.
//
//go:linkname loamPollInit
func loamPollInit() { netpollGenericInit() }
