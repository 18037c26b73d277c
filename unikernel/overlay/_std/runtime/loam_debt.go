package runtime

// A thread that need not be woken yet.
//
// Go's wakep wakes a thread whenever a goroutine becomes runnable and a P is idle. A
// server makes that happen several times for each request, and mostly for nothing:
// net/http starts a goroutine that watches for the client's end, and the thread that is
// woken comes when the request has been answered. So while a P goes on with what a loop
// of Loam's has readied (loamReady), or the poller, alone, the wake for a single goroutine is owed instead. As a
// rule the debt vanishes: the running goroutine blocks, and the P takes the other. It is
// paid when a second goroutine wants to run on the P, and by the clock: an alarm of the
// thread preempts the goroutine that goes on running, and who is preempted has a thread
// woken (goschedImpl). Nobody waits for longer than twice loamPatience, whatever runs.
//
// Read runtime/proc.go, "Worker thread parking/unparking", first.

import (
	"internal/runtime/atomic"
	_ "unsafe" // for go:linkname
)

// loamDebt is what a P has more here. It belongs to the thread that has the P.
type loamDebt struct {
	tick  uint32 // schedtick while what a loop has readied may run
	count uint32 // debts so far
	owed  bool   // the last of them has not been paid; it may have vanished
	// unwatched is set when what a loop has readied runs while the runtime's monitor
	// sleeps. Nobody then stops a goroutine that goes on for long, or looks for input while
	// all Ps are busy: the alarm has the monitor woken as well.
	unwatched bool
	watch     bool // and that is to be done when the goroutine gives way
	// unpolled is set when what the poller has readied runs while no thread waits for input.
	unpolled bool
}

// loamAlarm is what an M has more here: a timer, whose signal comes to this thread. Only
// the thread itself, and the handler of the signal on it, use it.
type loamAlarm struct {
	state uint32 // one of those below
	timer int32  // its number
	seen  uint32 // the P's count when the alarm was set

	// polled is the goroutine that the poller gave this thread the last time, alone; 0:
	// none, or several. It may have run since. waited says that the thread waited for it.
	polled guintptr
	waited bool
}

// States of an alarm.
const (
	loamAlarmNone = iota // it has not been made yet
	loamAlarmOff
	loamAlarmOn
	loamAlarmRefused // there can be none: nothing is owed
)

// wakep is called when a goroutine has become runnable.
//
//go:linkname wakep
func wakep() {
	if !loamOwe() {
		loamWakep()
	}
}

// loamWakep wakes a thread, if Go's rules want one.
func loamWakep() {
	mp := getg().m
	if pp := mp.p.ptr(); pp != nil {
		pp.loam.owed, pp.loam.unpolled = false, false
		if pp.loam.watch && mp.curg == nil { // a goroutine has given way
			pp.loam.watch = false
			loamWatch()
		}
	}
	linuxWakep()
	loamWoken()
}

// loamResumes is called when a loop has readied what pp goes on with.
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

// loamOwe reports whether the wake may be owed, and then it is. That no P is idle, or that
// another thread is looking for work already, is for Go's wakep to find.
func loamOwe() bool {
	mp := getg().m
	pp := mp.p.ptr()
	if !loamOwes || pp == nil || mp.loam.state == loamAlarmRefused || debug.asyncpreemptoff != 0 {
		return false
	}
	if mp.curg == nil {
		return loamOwePoll(mp, pp)
	}
	if mp.loam.polled.ptr() == mp.curg {
		mp.loam.polled = 0
		pp.loam.tick = pp.schedtick
	}
	if pp.loam.tick != pp.schedtick || pp.runnext == 0 || atomic.Load(&pp.runqhead) != atomic.Load(&pp.runqtail) || sched.npidle.Load() == 0 {
		return false
	}
	pp.loam.owed = true
	return loamIncur(mp, pp)
}

// loamOwePoll is loamOwe for a thread that goes on with the one goroutine that it waited for
// in the poller. Go wakes another, which finds nothing to do and waits for input in place of
// this one; what came is mostly done with sooner, and this thread waits again itself.
func loamOwePoll(mp *m, pp *p) bool {
	if mp.loam.polled == 0 || !mp.loam.waited {
		return false
	}
	mp.loam.polled = 0
	if !runqempty(pp) || sched.runq.size != 0 {
		return false
	}
	pp.loam.tick = pp.schedtick + 1 // as execute counts
	pp.loam.unpolled = true
	return loamIncur(mp, pp)
}

// loamIncur counts a debt, and has the alarm go off for it. It reports false if it cannot.
func loamIncur(mp *m, pp *p) bool {
	pp.loam.count++
	return mp.loam.state == loamAlarmOn || loamSetAlarm(mp, pp)
}

// loamSetAlarm has loamRing called on this thread after loamPatience. It reports false if
// that cannot be.
func loamSetAlarm(mp *m, pp *p) bool {
	if mp.loam.state == loamAlarmNone {
		loamMakeAlarm(mp)
	}
	if mp.loam.state == loamAlarmRefused {
		return false
	}
	mp.loam.seen = pp.loam.count
	mp.loam.state = loamAlarmOn // before the signal can come
	var when itimerspec
	when.it_value.setNsec(loamPatience)
	timer_settime(mp.loam.timer, 0, &when, nil)
	return true
}

// loamMakeAlarm makes the timer of a thread.
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

// loamRing is called on the signal stack when the alarm goes off, or a signal has come that
// may have swallowed it: signals of one number do not queue. It asks the goroutine to give
// way, as preemptone does; doSigPreempt is called next, and sees to it.
//
//go:nowritebarrierrec
func loamRing() {
	mp := getg().m
	mp.loam.state = loamAlarmOff
	pp, curg := mp.p.ptr(), mp.curg
	if pp == nil || curg == nil {
		return
	}
	if watch := (pp.loam.unwatched || pp.loam.unpolled) && pp.loam.tick == pp.schedtick; !watch && (!pp.loam.owed || runqempty(pp)) {
		return // it has vanished, or is about to
	}
	if pp.loam.count == mp.loam.seen {
		pp.loam.watch = pp.loam.unwatched
		curg.preempt = true
		curg.stackguard0 = stackPreempt
	}
	loamSetAlarm(mp, pp) // for a younger debt, and for a goroutine that cannot be stopped here
}

// unminit is called when a thread is given up.
//
// It is nosplit because Go's is.
//
//go:nosplit
func unminit() {
	if a := &getg().m.loam; a.state == loamAlarmOn || a.state == loamAlarmOff {
		timer_delete(a.timer)
		a.state = loamAlarmNone
	}
	linuxUnminit()
}
