package runtime

// Readiness of Loam's descriptors without epoll. Read runtime/netpoll.go first.
//
// A descriptor of Loam's never meets epoll. netpollopen hands the poll
// descriptor to Loam, which keeps it beside its own file; whoever makes the
// file ready then readies the goroutine, with the same steps as netpollready
// and netpollgoready, on its own goroutine: no event is copied, and no thread
// waits for it.

import (
	"internal/runtime/atomic"
	"internal/runtime/syscall/linux"
	"unsafe"
)

// Descriptors of the host meet epoll as ever: those by which Loam itself reaches what it
// was given, which are loamHostFD more here than there, and those of connections that
// were handed over, which Loam names when it is asked about its own.
const (
	loamHostFD   = 1 << 24
	loamHostSpan = 1 << 24
)

// loamServing is set when Loam serves system calls: until then all descriptors are
// the host's.
//
//go:linkname loamServing
var loamServing bool

// loamPollOpen and loamPollClose tie a poll descriptor to a file of Loam's and
// untie it. They run on the goroutine that opens or closes the file, which
// holds no lock of the runtime, and return an errno, or loamHostFD and a descriptor
// of the host to take in its place.
//
//go:linkname loamPollOpen loam/unikernel/rt.pollOpen
func loamPollOpen(fd uintptr, pd *pollDesc, seq uintptr) uintptr

//go:linkname loamPollClose loam/unikernel/rt.pollClose
func loamPollClose(fd uintptr) uintptr

func netpollopen(fd uintptr, pd *pollDesc) uintptr {
	if fd-loamHostFD < loamHostSpan {
		return linuxNetpollopen(fd-loamHostFD, pd)
	}
	if !loamServing {
		return linuxNetpollopen(fd, pd)
	}
	bubble := loamLeaveBubble()
	errno := loamPollOpen(fd, pd, pd.fdseq.Load())
	loamEnterBubble(bubble)
	if errno >= loamHostFD {
		return loamHandedOpen(errno-loamHostFD, pd)
	}
	return errno
}

// loamArrivals is what a poll descriptor has more here, in front: what Linux has told about a
// connection that was handed over. It grows by two whenever something may have come to
// be read, and is odd from when on that is, or may be, the end: posix.Arrivals.
type loamArrivals struct {
	word atomic.Uint32
}

// loamEpollPri is EPOLLPRI: urgent data, in front of which a read comes up short.
const loamEpollPri = 0x2

// loamHandedOpen is linuxNetpollopen for a connection that was handed over.
func loamHandedOpen(fd uintptr, pd *pollDesc) uintptr {
	ev := linux.EpollEvent{Events: linux.EPOLLIN | linux.EPOLLOUT | linux.EPOLLRDHUP | linux.EPOLLET | loamEpollPri}
	*(*taggedPointer)(unsafe.Pointer(&ev.Data)) = taggedPointerPack(unsafe.Pointer(pd), pd.fdseq.Load())
	return linux.EpollCtl(epfd, linux.EPOLL_CTL_ADD, int32(fd), &ev)
}

func netpollclose(fd uintptr) uintptr {
	if fd-loamHostFD < loamHostSpan {
		return linuxNetpollclose(fd - loamHostFD)
	}
	if !loamServing {
		return linuxNetpollclose(fd)
	}
	bubble := loamLeaveBubble()
	errno := loamPollClose(fd)
	loamEnterBubble(bubble)
	if errno >= loamHostFD {
		return linuxNetpollclose(errno - loamHostFD)
	}
	return errno
}

// setCrashFD is given a descriptor of the program's to which a crash is to be
// written. The runtime could only write to one of the host's, so nothing is set.
//
//go:linkname setCrashFD
func setCrashFD(fd uintptr) uintptr { return ^uintptr(0) }

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
		loamGoready(rg)
	}
	if wg != nil {
		loamGoready(wg)
	}
	netpollAdjustWaiters(delta)
}

// loamGoready is goready. If one of Loam's loops readies a goroutine, it leaves it to
// this thread, which is about to be done with the loop, and wakes no other: waking one
// takes longer than what the loop has left to do. That holds for one goroutine; if
// there are more, or if the loop has more to do after all (loamResumed), another thread
// is to help.
func loamGoready(gp *g) {
	if !loamStarted(getg()) {
		goready(gp, 1)
		return
	}
	systemstack(func() { loamReady(gp) })
}

// loamReady is ready, without wakep for the first goroutine.
func loamReady(gp *g) {
	status := readgstatus(gp)
	mp := acquirem() // keeps the P
	if status&^_Gscan != _Gwaiting {
		dumpgstatus(gp)
		throw("bad g->status in loamReady")
	}
	trace := traceAcquire()
	casgstatus(gp, _Gwaiting, _Grunnable)
	if trace.ok() {
		trace.GoUnpark(gp, 1)
		traceRelease(trace)
	}
	pp := mp.p.ptr()
	others := !runqempty(pp)
	runqput(pp, gp, true)
	loamResumes(mp, pp)
	if others {
		loamWakep()
	}
	releasem(mp)
}

// loamResumed is called by Loam's loops when they go on after they may have waited. If
// they have not, what they have readied waits for this thread still.
//
//go:linkname loamResumed
func loamResumed() {
	mp := acquirem()
	if !runqempty(mp.p.ptr()) {
		loamWakep()
	}
	releasem(mp)
}
