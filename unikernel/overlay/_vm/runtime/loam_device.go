package runtime

// Interrupts of devices, as seen by the goroutine that serves all of them. The kernel sets a bit per
// interrupt, and the goroutine parks until a bit is set. The kernel then wakes the poller. The poller
// returns that goroutine, as it returns goroutines whose files are ready, so no thread waits for interrupts
// alone.

import (
	"internal/runtime/atomic"
	"internal/runtime/syscall/linux"
	"unsafe"
)

// loamGate replaces SYSCALL instructions, in other packages too.
//
//go:linkname loamGate
func loamGate()

// loamCall makes a call of Loam's kernel that Linux does not have.
//
//go:linkname loamCall
func loamCall(number, a, b uintptr) (result, errno uintptr) {
	result, _, errno = linux.Syscall6(number, a, b, 0, 0, 0, 0)
	return result, errno
}

// loamCallPoll is the call number loam/kernel.CallPoll.
const loamCallPoll = 0x1007

// loamRung holds one bit for each interrupt that has arrived. The kernel sets the bits.
//
//go:linkname loamRung loam/kernel.Rung
var loamRung uint64

// loamAwaiting is the goroutine parked in loamAwaitInterrupts, or 0. The collector does not see it; that is
// safe because no g is ever freed.
var loamAwaiting uintptr

// loamAwaitInterrupts waits until bits are set, clears and returns them. Only one goroutine may call it.
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

// loamParkOnKernel reports whether the goroutine stays parked. It does not if a bit has been set since the
// goroutine looked.
func loamParkOnKernel(gp *g, _ unsafe.Pointer) bool {
	loamRinger = uintptr(unsafe.Pointer(gp))
	atomic.Storeuintptr(&loamPolledBy, 0)
	atomic.Storeuintptr(&loamAwaiting, uintptr(unsafe.Pointer(gp)))
	return atomic.Load64(&loamRung) == 0 || !atomic.Casuintptr(&loamAwaiting, uintptr(unsafe.Pointer(gp)), 0)
}

// loamPollInterrupts makes idle threads wait in the poller, from now on.
//
//go:linkname loamPollInterrupts
func loamPollInterrupts() {
	netpollGenericInit()
	netpollAdjustWaiters(1)
	loamStartStandIn()
}

// loamServeInterrupts is called by a goroutine whose thread enters ring 3 while bits are set. Unless a thread that waited in the
// poller is about to run the goroutine that serves interrupts, that goroutine runs before the caller continues, and so do the
// goroutines that it readies. Otherwise they would wait until the runtime preempts the caller.
//
//go:linkname loamServeInterrupts
func loamServeInterrupts() {
	if atomic.Load64(&loamRung) == 0 || sched.lastpoll.Load() == 0 && sched.npidle.Load() != 0 {
		return // lastpoll is 0 while a thread waits in the poller; the kernel has woken it, and it takes the idle P
	}
	if gp := atomic.Xchguintptr(&loamAwaiting, 0); gp != 0 {
		goready((*g)(unsafe.Pointer(gp)), 1)
		goyield()
	}
}

// netpoll replaces Go's. It waits for netpollBreak and for interrupts, and returns the goroutine that waits
// for interrupts. delay is in nanoseconds as in Go's. A negative delay waits forever. Zero does not wait,
// and does not call the kernel. The poller of a virtual machine has no other members.
func netpoll(delay int64) (gList, int32) {
	var list gList
	mp := uintptr(unsafe.Pointer(getg().m))
	if atomic.Loaduintptr(&loamPolledBy) == mp {
		atomic.Storeuintptr(&loamPolledBy, 0)
	}
	waited := delay != 0
	if waited {
		// As in Go's version: if netpollBreak finds the signal already set from here on, it relies on this thread to check
		// again. If this thread runs a goroutine before it looks at the timers, the wake for that goroutine is not deferred.
		if broken, _ := loamCall(loamCallPoll, uintptr(delay), 0); broken == 1 {
			netpollWakeSig.Store(0)
			waited = false
		}
	}
	if atomic.Load64(&loamRung) != 0 {
		if gp := atomic.Xchguintptr(&loamAwaiting, 0); gp != 0 {
			list.push((*g)(unsafe.Pointer(gp)))
			if waited {
				atomic.Storeuintptr(&loamPolledBy, mp)
			}
		}
	}
	return list, 0
}
