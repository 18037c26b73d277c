package runtime

// Interrupts of devices, as the goroutine sees them that serves all of them: a set
// of bits which the kernel sets, and a place where that goroutine waits until one
// is set. The kernel then wakes the poller, which finds that goroutine ready, as
// it finds those whose files are ready: no thread waits for interrupts alone.

import (
	"internal/runtime/atomic"
	"internal/runtime/syscall/linux"
	"unsafe"
)

// loamGate stands in the place of SYSCALL instructions, in other packages too.
//
//go:linkname loamGate
func loamGate()

// loamCall asks the kernel for what Linux does not have.
//
//go:linkname loamCall
func loamCall(number, a, b uintptr) (result, errno uintptr) {
	result, _, errno = linux.Syscall6(number, a, b, 0, 0, 0, 0)
	return result, errno
}

// loamCallPoll is loam/kernel.CallPoll.
const loamCallPoll = 0x1007

// loamRung has the bits of interrupts that have come. The kernel sets them.
//
//go:linkname loamRung loam/kernel.Rung
var loamRung uint64

// loamAwaiting is the goroutine that waits in loamAwaitInterrupts, or 0. The
// collector does not know of it; no g is ever freed.
var loamAwaiting uintptr

// loamAwaitInterrupts waits until there are bits, and takes them. One goroutine
// may call it.
//
//go:linkname loamAwaitInterrupts
func loamAwaitInterrupts() uint64 {
	for {
		if bits := atomic.Xchg64(&loamRung, 0); bits != 0 {
			return bits
		}
		gopark(loamParkOnKernel, nil, waitReasonIOWait, traceBlockNet, 1)
	}
}

// loamParkOnKernel reports whether the goroutine stays where it is: bits may have been set
// since it looked.
func loamParkOnKernel(gp *g, _ unsafe.Pointer) bool {
	atomic.Storeuintptr(&loamAwaiting, uintptr(unsafe.Pointer(gp)))
	return atomic.Load64(&loamRung) == 0 || !atomic.Casuintptr(&loamAwaiting, uintptr(unsafe.Pointer(gp)), 0)
}

// loamPollInterrupts has idle threads wait in the poller, from now on.
//
//go:linkname loamPollInterrupts
func loamPollInterrupts() {
	netpollGenericInit()
	netpollAdjustWaiters(1)
}

// netpoll takes the place of Go's: it waits for netpollBreak and for interrupts, and
// finds the goroutine that waits for these. The delay is as there: in nanoseconds;
// negative: for ever; 0: not at all, and then the kernel need not be asked. Nothing else
// is ever in the poller's set.
func netpoll(delay int64) (gList, int32) {
	var list gList
	if delay != 0 {
		// As in Go's, who breaks from here on and finds the signal set has somebody to
		// look again: us.
		if broken, _ := loamCall(loamCallPoll, uintptr(delay), 0); broken == 1 {
			netpollWakeSig.Store(0)
		}
	}
	if atomic.Load64(&loamRung) != 0 {
		if gp := atomic.Xchguintptr(&loamAwaiting, 0); gp != 0 {
			list.push((*g)(unsafe.Pointer(gp)))
		}
	}
	return list, 0
}
