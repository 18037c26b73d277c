package runtime

// Readiness of Loam's descriptors without epoll. Read runtime/netpoll.go first.
//
// epoll is not used for descriptors of Loam. netpollopen passes the poll descriptor to Loam, which stores
// it with its own file. A goroutine of Loam that makes the file ready then readies the waiting goroutine
// itself, with the same steps as netpollready and netpollgoready. No event is copied, and no thread waits
// for it.

import (
	"internal/runtime/atomic"
	"internal/runtime/syscall/linux"
	"unsafe"
)

// Host file descriptors still use the host's epoll. There are two kinds. Descriptors through which Loam
// itself reaches the host are numbered host number + loamHostFD in the guest. Descriptors of handed-over
// connections have a number of Loam; loamPollOpen returns their host number.
const (
	loamHostFD   = 1 << 24
	loamHostSpan = 1 << 24
)

// loamServing is set when Loam serves system calls. Until then all descriptors are the host's.
//
//go:linkname loamServing
var loamServing bool

// loamPollOpen and loamPollClose attach a poll descriptor to a file of Loam and detach it. They run on the
// goroutine that opens or closes the file, which holds no lock of the runtime. The result is an errno, or
// loamHostFD plus a host descriptor to use instead.
//
//go:linkname loamPollOpen loam/unikernel/rt.pollOpen
func loamPollOpen(fd uintptr, pd *pollDesc, seq uintptr) uintptr

//go:linkname loamPollClose loam/unikernel/rt.pollClose
func loamPollClose(fd uintptr) uintptr

// netpollopen adds a poll descriptor to the poller: to Loam for Loam's descriptors, and to epoll for the
// host's.
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

// loamArrivals is a field that the overlay adds at the start of a poll descriptor. It records what Linux
// has reported about a handed-over connection: posix.Arrivals. The word grows by two whenever new input may
// have arrived. It is odd once the input has ended or may have ended.
type loamArrivals struct {
	word atomic.Uint32
}

// loamEpollPri is EPOLLPRI: urgent data is queued. A read stops before urgent data and returns less than
// asked for.
const loamEpollPri = 0x2

// loamHandedOpen adds a handed-over connection to epoll, as linuxNetpollopen does, and also requests EPOLLPRI.
func loamHandedOpen(fd uintptr, pd *pollDesc) uintptr {
	ev := linux.EpollEvent{Events: linux.EPOLLIN | linux.EPOLLOUT | linux.EPOLLRDHUP | linux.EPOLLET | loamEpollPri}
	*(*taggedPointer)(unsafe.Pointer(&ev.Data)) = taggedPointerPack(unsafe.Pointer(pd), pd.fdseq.Load())
	return linux.EpollCtl(epfd, linux.EPOLL_CTL_ADD, int32(fd), &ev)
}

// netpollclose removes a poll descriptor from Loam or from epoll, where netpollopen has added it.
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

// setCrashFD would set the descriptor to which a crash report is written. The runtime could only write to a
// host descriptor, and fd is the program's, so nothing is set.
//
//go:linkname setCrashFD
func setCrashFD(fd uintptr) uintptr { return ^uintptr(0) }

// loamPollReady records that the file attached to pd can be read, written or both, and readies the
// goroutines that wait for it. seq is the use of pd at the time of pollOpen; a stale seq is ignored. pd
// outlives the file, because poll descriptors are never freed. It must be called on an ordinary goroutine.
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

// loamGoready is goready, with one difference. When one of Loam's loops readies a goroutine, the goroutine
// runs on this thread after the loop, and no other thread is woken: waking one takes longer than the rest
// of the loop's turn. Another thread is woken if a second goroutine becomes ready, or if the loop has more
// to do after all (loamResumed).
func loamGoready(gp *g) {
	if !loamStarted(getg()) {
		goready(gp, 1)
		return
	}
	systemstack(func() { loamReady(gp) })
}

// loamReady is the runtime's ready, except that it calls wakep only from the second goroutine on.
func loamReady(gp *g) {
	status := readgstatus(gp)
	mp := acquirem() // prevents that the goroutine loses its P
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

// loamResumed is called by Loam's loops when they continue after a point at which they may have blocked. If
// the loop has not blocked, the goroutines that it has readied still wait for this thread. loamResumed then
// wakes another thread to run them.
//
//go:linkname loamResumed
func loamResumed() {
	mp := acquirem()
	if !runqempty(mp.p.ptr()) {
		loamWakep()
	}
	releasem(mp)
}
