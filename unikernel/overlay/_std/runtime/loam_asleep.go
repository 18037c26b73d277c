package runtime

// The deadlock detector for a program whose kernel has its threads, goroutines and timers in the same
// runtime. Go's own detector (checkdead) looks for running threads. One thread of Loam's always waits in
// the poller, for a device or for a stack's timer, so checkdead never finds a deadlock. This detector looks
// at goroutines and timers instead: can one of the program's own ever continue?
//
// It runs whenever the last P becomes idle. No goroutine runs then, and none can start while sched.lock is
// held: readying a goroutine or changing a timer needs a P.
//
// A goroutine that waits for a file or a socket, or inside a system call, counts as able to continue,
// whatever it waits for. Go's detector on Linux does not look into the kernel either.

import (
	"internal/abi"
	"unsafe"
)

// pidleput puts an idle P on the idle list, as Go's version does. After the last P it also runs the
// detector. It runs without a P, so it must not use write barriers.
//
//go:nowritebarrierrec
func pidleput(pp *p, now int64) int64 {
	now = linuxPidleput(pp, now)
	if sched.npidle.Load() == gomaxprocs {
		loamCheckdead()
	}
	return now
}

// loamAwake caches the goroutine that was last found able to continue, so that the others, which may be
// many, are rarely examined. gp is a uintptr that the collector does not see. That is safe because no g is
// ever freed; its goid shows whether it is still the same goroutine.
var loamAwake struct {
	gp uintptr
	id uint64
}

// loamCheckdead ends the program if none of its goroutines can continue. It does so as Go's checkdead does,
// with the same messages. No P is in use, and sched.lock is held.
//
//go:nowritebarrierrec
func loamCheckdead() {
	if panicking.Load() > 0 || gcphase != _GCoff || loamStillAwake() || loamAnyTimer() {
		return
	}
	gp := loamFirst(loamGoesOn)
	if gp == nil {
		gp = loamFirst(loamInside) // these goroutines are examined last, because loamInside unwinds their stacks, which is slow
	}
	if gp != nil {
		loamAwake.gp, loamAwake.id = uintptr(unsafe.Pointer(gp)), gp.goid
		return
	}
	gp = loamFirst(loamExists)
	unlock(&sched.lock)
	if gp == nil {
		fatal("no goroutines (main called runtime.Goexit) - deadlock!")
	}
	fatal("all goroutines are asleep - deadlock!")
}

// loamStillAwake reports whether the goroutine in loamAwake can still continue.
func loamStillAwake() bool {
	gp := (*g)(unsafe.Pointer(loamAwake.gp))
	return gp != nil && gp.goid == loamAwake.id && loamExists(gp) && (loamGoesOn(gp) || loamInside(gp))
}

// loamFirst returns the first goroutine of the program for which the function is returns true, or nil.
func loamFirst(is func(gp *g) bool) *g {
	all, n := atomicAllG()
	for i := range n {
		if gp := atomicAllGIndex(all, i); loamExists(gp) && is(gp) && !isSystemGoroutine(gp, false) {
			return gp
		}
	}
	return nil
}

// loamExists reports whether gp has started and has not ended.
func loamExists(gp *g) bool {
	switch readgstatus(gp) &^ _Gscan {
	case _Gidle, _Gdead, _Gdeadextra:
		return false
	}
	return true
}

// loamGoesOn reports whether the state of gp shows that it may continue without being woken by another
// goroutine or a timer. It does not detect a goroutine inside a system call, which only its stack shows: see
// loamInside.
func loamGoesOn(gp *g) bool {
	if readgstatus(gp)&^_Gscan != _Gwaiting {
		return true
	}
	switch gp.waitreason {
	case waitReasonChanReceiveNilChan, waitReasonChanSendNilChan, waitReasonSelectNoCases,
		waitReasonSelect, waitReasonChanReceive, waitReasonChanSend, waitReasonSemacquire,
		waitReasonSyncCondWait, waitReasonSyncMutexLock, waitReasonSyncRWMutexRLock,
		waitReasonSyncRWMutexLock, waitReasonSyncWaitGroupWait, waitReasonCoroutine,
		waitReasonSynctestRun, waitReasonSynctestWait, waitReasonSynctestChanReceive,
		waitReasonSynctestChanSend, waitReasonSynctestSelect, waitReasonSynctestWaitGroupWait:
		return false
	}
	return true
}

// loamInside reports whether gp waits inside a system call that Loam serves.
func loamInside(gp *g) bool {
	var u unwinder
	for u.init(gp, unwindSilentErrors); u.valid(); u.next() {
		if loamNamed(u.frame.fn) {
			return true
		}
	}
	return false
}

// loamAnyTimer reports whether a timer of the program is set.
func loamAnyTimer() bool {
	for _, pp := range allp {
		for _, t := range pp.timers.heap {
			if t.timer.state&timerZombie == 0 && !loamTimer(t.timer) {
				return true
			}
		}
	}
	return false
}

// loamTimer reports whether a timer belongs to Loam or to the runtime, judged by its action. Such a timer
// sends on a channel on which no goroutine of the program waits, or it calls a function of Loam or wakes a
// goroutine of Loam.
func loamTimer(t *timer) bool {
	if t.isChan {
		return !loamProgramReceives((*hchan)(efaceOf(&t.arg).data))
	}
	switch arg := t.arg.(type) {
	case *g: // the goroutine waits in time.Sleep
		return isSystemGoroutine(arg, false)
	case func():
		return loamNamed(findfunc(abi.FuncPCABIInternal(arg)))
	}
	return false
}

// loamProgramReceives reports whether a goroutine of the program waits to receive from c.
func loamProgramReceives(c *hchan) bool {
	for s := c.recvq.first; s != nil; s = s.next {
		if !isSystemGoroutine(s.g, false) {
			return true
		}
	}
	return false
}
