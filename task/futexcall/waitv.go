package futexcall

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/futex"
)

// Layout of the arguments of futex_waitv(2), and its limits.
const (
	mostFutexes    = 128
	futexWaitvSize = 24 // size of struct futex_waitv in bytes
	futexSize32    = 2  // the flag FUTEX2_SIZE_U32
)

// waitAny implements futex_waitv(2): it waits for the first of several futexes, and returns the index of one that was
// woken. Errors: EINVAL, EFAULT, EAGAIN, ETIMEDOUT, EINTR.
func (t task) waitAny(a call.Args) (uint64, linux.Errno) {
	n, clock := uint32(a.A2), number(a.A5)
	if uint32(a.A3) != 0 || n == 0 || n > mostFutexes || a.A1 == 0 {
		return 0, linux.EINVAL
	}
	if a.A4 != 0 && clock != linux.CLOCK_MONOTONIC && clock != linux.CLOCK_REALTIME {
		return 0, linux.EINVAL
	}
	most, errno := t.until(a.A4, clock)
	if errno != 0 {
		return 0, errno
	}
	b := make([]byte, n*futexWaitvSize)
	if errno := t.Memory().Read(b, a.A1); errno != 0 {
		return 0, errno
	}
	all := make([]awaited, n)
	woken := make(chan struct{}, n) // wakers send, at most once for each futex; this thread receives
	for i := range all {
		if errno = all[i].parse(b[i*futexWaitvSize:]); errno != 0 {
			return 0, errno
		}
		all[i].waiter.Woken = woken
	}
	for i := range all {
		if errno := t.locate(&all[i]); errno != 0 {
			return 0, errno
		}
	}
	begun, errno := t.enqueueAll(all)
	if errno == 0 {
		errno = t.Await(woken, most)
	}
	index := -1
	for i := range begun {
		if !t.cancel(&all[i].waiter) {
			index = i
		}
	}
	if index >= 0 {
		return uint64(index), 0
	}
	return 0, errno
}

// awaited is one of the futexes for which futex_waitv waits.
type awaited struct {
	addr    uint64
	value   uint32
	private bool
	key     mem.Location
	waiter  waiter
}

// parse decodes a struct futex_waitv. Errors: EINVAL.
func (w *awaited) parse(b []byte) linux.Errno {
	le := binary.LittleEndian
	value, flags := le.Uint64(b), le.Uint32(b[16:])
	w.addr, w.value, w.private = le.Uint64(b[8:]), uint32(value), flags&linux.FUTEX_PRIVATE_FLAG != 0
	switch {
	case flags&^(futexSize32|linux.FUTEX_PRIVATE_FLAG) != 0, flags&futexSize32 == 0, le.Uint32(b[20:]) != 0, value>>32 != 0:
		return linux.EINVAL
	}
	return 0
}

// locate finds the location of a futex in memory, and makes its page present. Errors: EINVAL, EFAULT.
func (t task) locate(w *awaited) linux.Errno {
	const four = 4
	if w.addr%four != 0 {
		return linux.EINVAL
	}
	var ok bool
	if w.key, ok = t.Map().Locate(w.addr, w.private); !ok {
		return linux.EFAULT
	}
	_, errno := t.Load(w.addr)
	return errno
}

// enqueueAll begins to wait for one futex after the other, until the value of one has changed. It returns the number of
// waits that have begun. Errors: EAGAIN, EFAULT.
func (t task) enqueueAll(all []awaited) (begun int, errno linux.Errno) {
	for i := range all {
		w := &all[i]
		if errno = t.enqueue(w.key, &w.waiter, w.addr, w.value, futex.AnyBit); errno != 0 {
			return i, errno
		}
	}
	return len(all), 0
}
