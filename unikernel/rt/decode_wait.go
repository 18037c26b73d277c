package rt

import (
	"math/bits"
	"syscall"
	"time"
	"unsafe"

	"loam/posix"
)

// Decoders of the calls that wait: epoll, poll, select.

//go:noinline
func sysEpollCreate(flags int) (uintptr, uintptr) { return result(process.EpollCreate(flags)) }

// epollEvent is struct epoll_event, which is packed on x86-64.
type epollEvent struct {
	events uint32
	data   [2]uint32
}

//go:noinline
func sysEpollCtl(epfd, op, fd int, p unsafe.Pointer) (uintptr, uintptr) {
	var ev posix.EpollEvent
	if e := (*epollEvent)(p); e != nil {
		ev = posix.EpollEvent{Events: e.events, Data: uint64(e.data[0]) | uint64(e.data[1])<<32}
	} else if op != syscall.EPOLL_CTL_DEL {
		return fail(syscall.EFAULT)
	}
	return fail(process.EpollCtl(epfd, op, fd, ev))
}

//go:noinline
func sysEpollWait(epfd int, p unsafe.Pointer, n, ms int) (uintptr, uintptr) {
	return epollWait(epfd, p, n, time.Duration(ms)*time.Millisecond)
}

//go:noinline
func sysEpollWait2(epfd int, p unsafe.Pointer, n int, timeout unsafe.Pointer) (uintptr, uintptr) {
	return epollWait(epfd, p, n, timespec(timeout))
}

// maxEpollEvents bounds how many events one call returns.
const maxEpollEvents = 1024

func epollWait(epfd int, p unsafe.Pointer, n int, timeout time.Duration) (uintptr, uintptr) {
	switch {
	case n <= 0:
		return fail(syscall.EINVAL)
	case p == nil:
		return fail(syscall.EFAULT)
	}
	events := make([]posix.EpollEvent, min(n, maxEpollEvents))
	got, errno := process.EpollWait(epfd, events, timeout)
	if errno != 0 {
		return fail(errno)
	}
	out := unsafe.Slice((*epollEvent)(p), n)
	for i, ev := range events[:got] {
		out[i] = epollEvent{ev.Events, [2]uint32{uint32(ev.Data), uint32(ev.Data >> 32)}}
	}
	return result(got, 0)
}

// timespec reads a timeout; none means for ever.
func timespec(p unsafe.Pointer) time.Duration {
	if p == nil {
		return -1
	}
	ts := *(*syscall.Timespec)(p)
	return time.Duration(ts.Sec)*time.Second + time.Duration(ts.Nsec)
}

// pollFD is struct pollfd.
type pollFD struct {
	fd              int32
	events, revents int16
}

// maxPoll bounds how many entries poll looks at.
const maxPoll = 1 << 20

//go:noinline
func sysPoll(p unsafe.Pointer, n, ms int) (uintptr, uintptr) {
	return poll(p, n, time.Duration(ms)*time.Millisecond)
}

//go:noinline
func sysPpoll(p unsafe.Pointer, n int, timeout unsafe.Pointer) (uintptr, uintptr) {
	return poll(p, n, timespec(timeout))
}

func poll(p unsafe.Pointer, n int, timeout time.Duration) (uintptr, uintptr) {
	switch {
	case n < 0 || n > maxPoll:
		return fail(syscall.EINVAL)
	case n > 0 && p == nil:
		return fail(syscall.EFAULT)
	}
	entries := unsafe.Slice((*pollFD)(p), n)
	fds := make([]posix.PollFD, n)
	for i, e := range entries {
		fds[i] = posix.PollFD{FD: int(e.fd), Events: posix.Events(uint16(e.events))}
	}
	ready, errno := process.Poll(fds, timeout)
	if errno != 0 {
		return fail(errno)
	}
	entries = unsafe.Slice((*pollFD)(p), n)
	for i := range entries {
		entries[i].revents = int16(fds[i].Revents)
	}
	return result(ready, 0)
}

// What select's three sets ask for, as poll events (select(2)).
var selectEvents = [3]posix.Events{
	posix.PollIn | posix.PollHup | posix.PollErr,
	posix.PollOut | posix.PollErr,
	posix.PollPri,
}

// sysSelect is select and pselect6.
//
//go:noinline
func sysSelect(n int, r, w, x, timeout unsafe.Pointer, timeval bool) (uintptr, uintptr) {
	sets := [3][]uint64{}
	for i, p := range [3]unsafe.Pointer{r, w, x} {
		if p != nil {
			sets[i] = unsafe.Slice((*uint64)(p), (n+63)/64)
		}
	}
	wait := timespec(timeout)
	if timeval && timeout != nil {
		tv := *(*syscall.Timeval)(timeout)
		wait = time.Duration(tv.Sec)*time.Second + time.Duration(tv.Usec)*time.Microsecond
	}
	var fds []posix.PollFD
	for word := range (n + 63) / 64 {
		fds = appendSelected(fds, &sets, word)
	}
	if _, errno := process.Poll(fds, wait); errno != 0 {
		return fail(errno)
	}
	return result(putSelected(fds, &sets), 0)
}

// appendSelected adds the descriptors that one word of the sets names, and
// clears it.
func appendSelected(fds []posix.PollFD, sets *[3][]uint64, word int) []posix.PollFD {
	var asked [3]uint64
	for i, s := range sets {
		if s != nil {
			asked[i], s[word] = s[word], 0
		}
	}
	for all := asked[0] | asked[1] | asked[2]; all != 0; all &= all - 1 {
		bit := bits.TrailingZeros64(all)
		f := posix.PollFD{FD: word*64 + bit}
		for i := range asked {
			if asked[i]>>bit&1 != 0 {
				f.Events |= selectEvents[i]
			}
		}
		fds = append(fds, f)
	}
	return fds
}

// putSelected sets the bits of what is ready and returns how many it set. A set
// asked for something if its events are among those of the entry.
func putSelected(fds []posix.PollFD, sets *[3][]uint64) int {
	n := 0
	for _, f := range fds {
		for i, s := range sets {
			if s != nil && f.Events&selectEvents[i] == selectEvents[i] && f.Revents&selectEvents[i] != 0 {
				s[f.FD/64] |= 1 << (f.FD % 64)
				n++
			}
		}
	}
	return n
}

//go:noinline
func sysEventFD(count uint32, flags int) (uintptr, uintptr) {
	return result(process.EventFD(count, flags))
}

//go:noinline
func sysInotifyInit(flags int) (uintptr, uintptr) { return result(process.InotifyInit(flags)) }

//go:noinline
func sysInotifyAddWatch(fd int, path unsafe.Pointer, mask uint32) (uintptr, uintptr) {
	name, errno := pathAt(path)
	if errno != 0 {
		return fail(errno)
	}
	return result(process.InotifyAddWatch(fd, name, mask))
}

//go:noinline
func sysInotifyRmWatch(fd int, number int32) (uintptr, uintptr) {
	return fail(process.InotifyRmWatch(fd, number))
}
