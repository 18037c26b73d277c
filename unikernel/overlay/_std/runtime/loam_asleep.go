package runtime

// The deadlock detector, for a program whose kernel has threads, goroutines and timers in
// the same runtime. Go's own (checkdead) looks for threads that run: one of Loam's always
// waits in the poller, for a device or for the hour that a shard's timer is set to, and so
// it never finds anything. This one asks of goroutines and timers instead, whether one of
// the program's own can ever go on. It looks whenever the last P becomes idle. Nothing
// runs then, and nothing begins to as long as sched.lock is held: a P is needed to ready
// a goroutine or to touch a timer.
//
// What Loam does is as little of its business as what Linux does is of Go's: a goroutine
// that waits for a file or a socket, or within a system call, may go on, whatever it
// waits for there.

import (
	"internal/abi"
	"unsafe"
)

// pidleput is Go's, which puts an idle P with the others, with a look after the last of
// them. It has no P, and so no write barriers.
//
//go:nowritebarrierrec
func pidleput(pp *p, now int64) int64 {
	now = linuxPidleput(pp, now)
	if sched.npidle.Load() == gomaxprocs {
		loamCheckdead()
	}
	return now
}

// loamAwake is the goroutine that was last found to be one that may go on, so that the
// others, which may be many, are seldom looked at. The collector does not know of gp: no g
// is ever freed, and its goid says whether it is still the same goroutine.
var loamAwake struct {
	gp uintptr
	id uint64
}

// loamCheckdead ends the program if none of its goroutines can go on: as Go's does it,
// and with its words. No P is in use, and sched.lock is held.
//
//go:nowritebarrierrec
func loamCheckdead() {
	if panicking.Load() > 0 || gcphase != _GCoff || loamStillAwake() || loamAnyTimer() {
		return
	}
	gp := loamFirst(loamGoesOn)
	if gp == nil {
		gp = loamFirst(loamInside) // takes longer
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

// loamStillAwake reports whether the goroutine that loamAwake remembers may go on.
func loamStillAwake() bool {
	gp := (*g)(unsafe.Pointer(loamAwake.gp))
	return gp != nil && gp.goid == loamAwake.id && loamExists(gp) && (loamGoesOn(gp) || loamInside(gp))
}

// loamFirst is the first goroutine of the program's of which is holds, or nil.
func loamFirst(is func(gp *g) bool) *g {
	all, n := atomicAllG()
	for i := range n {
		if gp := atomicAllGIndex(all, i); loamExists(gp) && is(gp) && !isSystemGoroutine(gp, false) {
			return gp
		}
	}
	return nil
}

// loamExists reports whether gp has begun, and has not ended.
func loamExists(gp *g) bool {
	switch readgstatus(gp) &^ _Gscan {
	case _Gidle, _Gdead, _Gdeadextra:
		return false
	}
	return true
}

// loamGoesOn reports whether gp may go on without another goroutine, or a timer, that
// makes it, as its state says: loamInside is seen by its stack only.
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

// loamInside reports whether gp, which waits, does so within a system call.
func loamInside(gp *g) bool {
	var u unwinder
	for u.init(gp, unwindSilentErrors); u.valid(); u.next() {
		if loamNamed(u.frame.fn) {
			return true
		}
	}
	return false
}

// loamAnyTimer reports whether a timer of the program's is set.
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

// loamTimer reports whether a timer is Loam's, or the runtime's, by what it will do: send
// on a channel at which nobody else waits, or call a function of theirs.
func loamTimer(t *timer) bool {
	if t.isChan {
		return !loamProgramReceives((*hchan)(efaceOf(&t.arg).data))
	}
	switch arg := t.arg.(type) {
	case *g: // it sleeps
		return isSystemGoroutine(arg, false)
	case func():
		return loamNamed(findfunc(abi.FuncPCABIInternal(arg)))
	}
	return false
}

// loamProgramReceives reports whether a goroutine of the program's waits to receive from c.
func loamProgramReceives(c *hchan) bool {
	for s := c.recvq.first; s != nil; s = s.next {
		if !isSystemGoroutine(s.g, false) {
			return true
		}
	}
	return false
}
