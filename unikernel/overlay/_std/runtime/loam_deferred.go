package runtime

// Deferred wakes: when a thread need not be woken yet.
//
// Go's wakep wakes a thread whenever a goroutine becomes runnable and a P is idle. In a server that happens
// several times per request, mostly without benefit. For example, net/http starts a goroutine that watches
// for the end of the connection, and the woken thread arrives when the request has already been answered.
//
// Therefore the wake for a single goroutine is deferred while a P runs a goroutine that a loop of
// Loam (loamReady) or the poller has just readied and that was the only one. Usually the deferred wake
// becomes unnecessary: the running goroutine blocks, and the P takes the other one. The wake is made after
// all in two cases:
// - a second goroutine becomes runnable on the P;
// - an alarm of the thread expires. It preempts the running goroutine, and preemption wakes a thread
//   (goschedImpl).
//
// No goroutine waits longer than twice loamPatience, whatever runs.
//
// Read runtime/proc.go, "Worker thread parking/unparking", first.

import (
	"internal/runtime/atomic"
	_ "unsafe" // for go:linkname
)

// loamDeferred is a field that Loam's edits add to the runtime's struct p. It belongs to the thread that has the P.
type loamDeferred struct {
	tick     uint32 // value of schedtick while the goroutine may run that a loop of Loam or the poller has readied
	count    uint32 // number of wakes that were deferred so far
	deferred bool   // the latest deferred wake has not been made; it may have become unnecessary
	// unwatched is set when a goroutine that a loop has readied runs while the runtime's monitor sleeps.
	// Nothing then preempts a goroutine that runs for long, or polls for input while all Ps are busy. The
	// alarm therefore also wakes the monitor.
	unwatched bool
	watch     bool // the runtime's monitor must be woken when the running goroutine yields
	// unpolled is set when a goroutine that the poller has readied runs while no thread waits for input.
	unpolled bool
}

// loamAlarm is a field that the overlay adds to an M: a timer whose signal is sent to this thread. Only the
// thread itself, and the signal's handler on it, use it.
type loamAlarm struct {
	state uint32 // one of the states of an alarm below
	timer int32  // ID of the timer
	seen  uint32 // value of P's count when the alarm was set

	// polled is the single goroutine that the poller last returned to this thread; 0 if it returned none or
	// several. It may have run since. waited reports whether the thread blocked in the poller for it.
	polled guintptr
	waited bool
}

// States of an alarm, which is a timer whose signal one thread gets.
const (
	loamAlarmNone = iota // the timer does not exist yet
	loamAlarmOff
	loamAlarmOn
	loamAlarmRefused // the timer could not be created: no wake is deferred
)

// wakep is called when a goroutine has become runnable. It wakes a thread, or defers the wake.
//
//go:linkname wakep
func wakep() {
	if !loamDefer() && !loamOwe() {
		loamWakep()
	}
}

// loamWakep wakes a thread if Go's own rules for wakep require it.
func loamWakep() {
	mp := getg().m
	if pp := mp.p.ptr(); pp != nil {
		pp.loam.deferred, pp.loam.unpolled = false, false
		if pp.loam.watch && mp.curg == nil { // the running goroutine has yielded
			pp.loam.watch = false
			loamWatch()
		}
	}
	linuxWakep()
	loamWoken()
}

// loamResumes is called when a loop of Loam has made a goroutine runnable, which pp runs next.
func loamResumes(mp *m, pp *p) {
	pp.loam.tick = pp.schedtick
	pp.loam.unwatched, pp.loam.unpolled = sched.sysmonwait.Load(), false
	if !pp.loam.unwatched || debug.asyncpreemptoff != 0 {
		return
	}
	pp.loam.count++
	if mp.loam.state != loamAlarmOn {
		loamSetAlarm(mp, pp)
	}
}

// loamWatch wakes the runtime's monitor, as entersyscall does.
func loamWatch() {
	lock(&sched.lock)
	if sched.sysmonwait.Load() {
		sched.sysmonwait.Store(false)
		notewakeup(&sched.sysmonnote)
	}
	unlock(&sched.lock)
}

// loamDefer defers the wake of a thread if this is allowed now, and reports whether it did. It does not check
// everything: Go's wakep itself finds that no P is idle or that another thread is already looking for work.
func loamDefer() bool {
	mp := getg().m
	pp := mp.p.ptr()
	if !loamDefers || pp == nil || mp.loam.state == loamAlarmRefused || debug.asyncpreemptoff != 0 {
		return false
	}
	if mp.curg == nil {
		return loamDeferPoll(mp, pp)
	}
	if mp.loam.polled.ptr() == mp.curg {
		mp.loam.polled = 0
		pp.loam.tick = pp.schedtick
	}
	if pp.loam.tick != pp.schedtick || pp.runnext == 0 || atomic.Load(&pp.runqhead) != atomic.Load(&pp.runqtail) || sched.npidle.Load() == 0 {
		return false
	}
	pp.loam.deferred = true
	return loamCountDeferred(mp, pp)
}

// loamDeferPoll is loamDefer for a thread that waited in the poller and received a single goroutine from it. Go
// would wake another thread, which finds no work and waits for input in place of this one. The input is
// mostly processed sooner, and this thread then waits again itself.
func loamDeferPoll(mp *m, pp *p) bool {
	if mp.loam.polled == 0 || !mp.loam.waited {
		return false
	}
	mp.loam.polled = 0
	if !runqempty(pp) || sched.runq.size != 0 {
		return false
	}
	pp.loam.tick = pp.schedtick + 1 // execute will increment schedtick
	pp.loam.unpolled = true
	return loamCountDeferred(mp, pp)
}

// loamCountDeferred counts a deferred wake and ensures that the alarm is set. It returns false if there can be no
// alarm.
func loamCountDeferred(mp *m, pp *p) bool {
	pp.loam.count++
	return mp.loam.state == loamAlarmOn || loamSetAlarm(mp, pp)
}

// loamSetAlarm makes loamRing run on this thread after loamPatience. It returns false if that is not
// possible.
func loamSetAlarm(mp *m, pp *p) bool {
	if mp.loam.state == loamAlarmNone {
		loamMakeAlarm(mp)
	}
	if mp.loam.state == loamAlarmRefused {
		return false
	}
	mp.loam.seen = pp.loam.count
	mp.loam.state = loamAlarmOn // set before the signal can arrive
	var when itimerspec
	when.it_value.setNsec(loamPatience)
	timer_settime(mp.loam.timer, 0, &when, nil)
	return true
}

// loamMakeAlarm creates the timer of a thread.
func loamMakeAlarm(mp *m) {
	var event sigevent
	event.notify = _SIGEV_THREAD_ID
	event.signo = sigPreempt
	event.sigev_notify_thread_id = int32(mp.procid)
	mp.loam.state = loamAlarmRefused
	if timer_create(loamAlarmClock, &event, &mp.loam.timer) == 0 {
		mp.loam.state = loamAlarmOff
	}
}

// loamRing runs on the signal stack. It is called when the alarm has expired, and also for another
// preemption signal, which may have replaced the alarm's: signals of one number do not queue. It asks the
// running goroutine to yield, as preemptone does. doSigPreempt is called next and carries that out.
//
//go:nowritebarrierrec
func loamRing() {
	mp := getg().m
	mp.loam.state = loamAlarmOff
	pp, curg := mp.p.ptr(), mp.curg
	if pp == nil || curg == nil {
		return
	}
	if watch := (pp.loam.unwatched || pp.loam.unpolled) && pp.loam.tick == pp.schedtick; !watch && (!pp.loam.deferred || runqempty(pp)) {
		return // the deferred wake has become unnecessary, or is about to become so
	}
	if pp.loam.count == mp.loam.seen {
		pp.loam.watch = pp.loam.unwatched
		curg.preempt = true
		curg.stackguard0 = stackPreempt
	}
	loamSetAlarm(mp, pp) // set again for a later deferred wake, or because the goroutine may not be preemptible at this point
}

// unminit is called when a thread exits. It deletes the thread's timer.
//
// It is nosplit because Go's version is.
//
//go:nosplit
func unminit() {
	if a := &getg().m.loam; a.state == loamAlarmOn || a.state == loamAlarmOff {
		timer_delete(a.timer)
		a.state = loamAlarmNone
	}
	linuxUnminit()
}
