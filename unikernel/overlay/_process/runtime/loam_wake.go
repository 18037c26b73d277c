package runtime

// loamAlarmClock is the clock of the threads' alarms (loam_deferred.go): CLOCK_MONOTONIC. Linux checks timers
// on a thread's CPU time only at its clock ticks, which is too coarse.
const loamAlarmClock = 1

// loamOwe is for virtual machines: see loam_poller.go there.
func loamOwe() bool { return false }

// loamWoken is called after Go's rules for waking a thread have been applied. On Linux there is nothing more to do.
func loamWoken() {}

// loamDefers enables deferred wakes (loam_deferred.go) on this platform.
const loamDefers = true

// netpoll is Go's netpoll. It also records whether it returned a single goroutine, and whether it was asked
// to wait.
func netpoll(delay int64) (gList, int32) {
	list, delta := linuxNetpoll(delay)
	mp := getg().m
	if mp.loam.polled = list.head; list.head != 0 && list.head.ptr().schedlink != 0 {
		mp.loam.polled = 0
	}
	mp.loam.waited = delay != 0
	return list, delta
}

// loamPatience is the time for which a wake is deferred, in nanoseconds. A wake may be deferred for up to
// twice as long: the alarm is set at most once in that time, and recognises deferred wakes only by their
// count.
const loamPatience = 500e3
