package runtime

// Deferred wakes for the poller of a virtual machine.
//
// A thread that waited in the poller gets the goroutine that serves interrupts, and runs it. If a request of a disk has completed, that
// goroutine makes the goroutine runnable that waits for the request, and parks. The thread runs the other goroutine, and mostly waits in
// the poller again soon. Go wakes another thread for the other goroutine. That thread finds no work, and then only waits in the poller.
//
// On Loam this wake is deferred, and is a debt (loam/kernel/thread.Debt). It is settled when a thread calls the poller. It is paid if an interrupt arrives, if netpollBreak is called, or when the time ends until which the thread wanted to wait in the poller, which
// is the time of the earliest timer of all Ps. For that the kernel wakes the stand-in: a thread without a P, which waits in the
// kernel. If a timer is set for an earlier time, wakeNetPoller calls netpollBreak or makes another wake.

import (
	"internal/runtime/atomic"
	"unsafe"
)

// loamDebt is one of the values below.
//
//go:linkname loamDebt loam/kernel.Debt
var loamDebt uint32

// Values of loamDebt: see loam/kernel/thread.Debt.
const (
	loamSettled = iota
	loamUnpaid
)

// loamCallStandIn is the call number loam/kernel.CallStandIn.
const loamCallStandIn = 0x1016

// loamHasStandIn is set when the stand-in exists. It is never cleared.
var loamHasStandIn bool

// loamDebts and loamPayments count deferred wakes, and those that the stand-in had to make. Atomic.
var loamDebts, loamPayments uint32

// loamCountDebts returns loamDebts and loamPayments. It is for tests.
//
//go:linkname loamCountDebts
func loamCountDebts() (debts, payments uint32) {
	return atomic.Load(&loamDebts), atomic.Load(&loamPayments)
}

// loamOwe is called when a goroutine has become runnable. It defers the wake of another thread if the thread would only have to wait in
// the poller, and reports whether it did.
func loamOwe() bool {
	mp := getg().m
	if gp := mp.curg; gp == nil || uintptr(unsafe.Pointer(gp)) != loamRinger || atomic.Loaduintptr(&loamPolledBy) != uintptr(unsafe.Pointer(mp)) ||
		!loamCompleting || !loamOnlyNext(mp.p.ptr()) {
		return false
	}
	atomic.Storeuintptr(&loamPolledBy, 0) // a second goroutine, or a timer, needs a thread
	if !atomic.Cas(&loamDebt, loamSettled, loamUnpaid) {
		return false
	}
	if atomic.Load64(&loamRung) != 0 || netpollWakeSig.Load() != 0 {
		return false // the kernel may have set the bit, or woken the poller for a new timer, before loamDebt was set
	}
	atomic.Xadd(&loamDebts, 1)
	return true
}

// loamRinger is the goroutine that serves interrupts; it is set when the goroutine parks for the first time. loamPolledBy is the thread that
// waited in the poller, and received this goroutine from it; 0 if the goroutine came to run in another way, or if a wake was deferred since.
// Both are pointers that the collector does not see. They are only compared.
var loamRinger, loamPolledBy uintptr

// loamCompleting reports whether the goroutine that serves interrupts completes requests of a disk. Only that goroutine accesses it.
var loamCompleting bool

// loamCompletes is called by the goroutine that serves interrupts, before it completes the requests of a disk, and after it.
//
//go:linkname loamCompletes
func loamCompletes(begins bool) { loamCompleting = begins }

// loamOnlyNext reports whether the goroutine that pp runs next is the only runnable one, a P is idle, no thread is in
// the poller, and the collector does not mark.
func loamOnlyNext(pp *p) bool {
	return pp != nil && pp.runnext != 0 && atomic.Load(&pp.runqhead) == atomic.Load(&pp.runqtail) && sched.runq.size == 0 &&
		sched.npidle.Load() != 0 && sched.lastpoll.Load() != 0 && gcBlackenEnabled == 0 && loamHasStandIn
}

// loamStartStandIn starts the stand-in, if there is a second CPU.
func loamStartStandIn() {
	if numCPUStartup > 1 {
		mp := acquirem() // as in startTemplateThread
		newm(loamStandIn, nil, -1)
		loamHasStandIn = true
		releasem(mp)
	}
}

// loamStandIn makes the deferred wakes that the kernel asks for. It runs without a P, as the runtime's monitor does, so write barriers
// are not allowed.
//
//go:nowritebarrierrec
func loamStandIn() {
	lock(&sched.lock)
	sched.nmsys++
	checkdead()
	unlock(&sched.lock)
	for {
		loamCall(loamCallStandIn, 0, 0)
		atomic.Xadd(&loamPayments, 1)
		incidlelocked(-1) // as in sysmon
		wakep()           // the woken thread polls
		incidlelocked(1)
	}
}
