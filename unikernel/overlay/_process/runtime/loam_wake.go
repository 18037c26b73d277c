package runtime

// loamAlarmClock is the clock of the alarms of threads (loam_debt.go): CLOCK_MONOTONIC. That
// of a thread's own time is looked at by Linux at its ticks only.
const loamAlarmClock = 1

// loamWoken is called when Go's rules for waking a thread have been followed. Linux does
// the rest.
func loamWoken() {}

// loamOwes says that wakes may be owed here (loam_debt.go).
const loamOwes = true

// netpoll returns the goroutines that input has made runnable.
func netpoll(delay int64) (gList, int32) {
	list, delta := linuxNetpoll(delay)
	mp := getg().m
	if mp.loam.polled = list.head; list.head != 0 && list.head.ptr().schedlink != 0 {
		mp.loam.polled = 0
	}
	mp.loam.waited = delay != 0
	return list, delta
}

// loamPatience is for how long a wake is owed, in nanoseconds, and up to twice that:
// the alarm is set at most once in that time, and tells debts by their number alone.
const loamPatience = 500e3
