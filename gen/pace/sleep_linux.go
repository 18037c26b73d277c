package pace

import "syscall"

// sleepUntil blocks the calling thread until t, a time as returned by Now. It wakes up late: by the timer slack of the
// thread (50 µs unless Punctual was called) and by the delay of the scheduler.
//
// It does not use time.Sleep. When no other goroutine runs, the runtime waits in epoll_wait(2), whose timeout is
// rounded up to milliseconds.
func sleepUntil(t int64) {
	for {
		far := t - Now()
		if far <= 0 {
			return
		}
		ts := syscall.NsecToTimespec(far)
		if err := syscall.Nanosleep(&ts, nil); err != syscall.EINTR {
			return // the only error that can occur is EINTR
		}
	}
}

// Operations of prctl(2).
const (
	setTimerSlack = 29
	getTimerSlack = 30
)

// Punctual minimizes the timer slack of the calling thread and returns a function that restores it. The goroutine
// must be locked to the thread.
func Punctual() (undo func()) {
	before, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	if errno != 0 {
		return func() {}
	}
	set := func(ns uintptr) { syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, ns, 0) } // best effort: errors are ignored
	set(least)
	return func() { set(before) }
}

// least is the smallest timer slack, in nanoseconds. 0 would restore the default of the thread.
const least = 1
