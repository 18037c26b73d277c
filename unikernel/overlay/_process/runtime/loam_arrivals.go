package runtime

import (
	"internal/runtime/syscall/linux"
	"unsafe" // go:linkname requires this import too
)

// loamArrived records in each poll descriptor what epoll has reported, before netpoll readies a goroutine for
// it. It may run without a P.
//
//go:linkname loamArrived internal/runtime/syscall/linux.loamArrived
//go:nowritebarrierrec
func loamArrived(events []linux.EpollEvent) {
	const end = linux.EPOLLRDHUP | linux.EPOLLHUP | linux.EPOLLERR | loamEpollPri
	for i := range events {
		ev := &events[i]
		if ev.Events&(linux.EPOLLIN|end) == 0 || *(**uintptr)(unsafe.Pointer(&ev.Data)) == &netpollEventFd {
			continue // in Go 1.26, an event of netpollBreak
		}
		tp := *(*taggedPointer)(unsafe.Pointer(&ev.Data))
		pd := (*pollDesc)(tp.pointer()) // nil in Go 1.27 for an event of netpollBreak
		if pd == nil || pd.fdseq.Load() != tp.tag() {
			continue
		}
		pd.loam.word.Add(2)
		if ev.Events&end != 0 {
			pd.loam.word.Or(1)
		}
	}
}
