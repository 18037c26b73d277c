package kernel

import (
	"syscall"

	"loam/kernel/signal"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Profiles. The Go runtime has a timer for each thread that runs Go, by
// timer_create(2) on the clock of the thread's own time on a CPU, and beside it
// one for the whole process, by setitimer(2), for threads without. Each time
// that one goes off the thread is sent SIGPROF, and the runtime notes down where
// it is.
//
// A thread has one such timer, whose number is the thread's. The timer of the
// process is one for each thread that has none of its own: each counts its own
// time, so samples still come where time is spent.
//
// A thread has another timer of that kind for itself, whose signal is SIGURG: the runtime
// has it remind it of its monitor, which sleeps (runtime/loam_debt.go). Its number is
// the thread's and alarms more.

// profileInterval is what setitimer has set, in nanoseconds; 0: nothing.
var profileInterval int64

// processUsed is for how long threads have had a CPU, all together, in
// nanoseconds.
var processUsed int64

// charge counts the time since the last call for the thread that had the CPU, and
// tells it when its timer goes off.
func (c *cpu) charge(now int64) {
	passed := now - c.chargedAt
	c.chargedAt = now
	if c.charged == thread.None || passed <= 0 {
		return
	}
	th := threads.At(c.charged)
	th.Used += passed
	processUsed += passed
	if th.Profile.Due(th.Used, profileInterval) {
		th.Pending |= uint64(signal.Of(signal.Profile))
		th.Sampled = true
	}
	if th.Alarm.Due(th.Used, 0) {
		th.Pending |= uint64(signal.Of(signal.Urgent))
		th.Rung = true
	}
}

// profileDeadline is when the next timer of the running thread goes off.
func (c *cpu) profileDeadline(now int64) int64 {
	if c.current == thread.None {
		return thread.Never
	}
	th := threads.At(c.current)
	if next := min(th.Profile.Next(profileInterval), th.Alarm.Next(0)); next != thread.Never {
		return now + max(0, next-th.Used)
	}
	return thread.Never
}

// profileInfo is what a thread is told with SIGPROF: which kind of timer it is.
func profileInfo(th *thread.Thread) signal.Info {
	th.Sampled = false
	info := signal.Info{Number: signal.Profile, Code: signal.CodeKernel}
	if th.Profile.Own {
		info.Code = signal.CodeTimer
	}
	return info
}

// alarms is added to the number of a thread for that of its alarm.
const alarms = thread.Max + 1

// createTimer is timer_create(2) for the timers of a thread.
func createTimer(c *cpu, id int, event, result uint64) int64 {
	const threadTime, eventSize, sendToThread = 3, 64, 4 // CLOCK_THREAD_CPUTIME_ID, SIGEV_THREAD_ID
	switch {
	case id != threadTime:
		return -int64(syscall.EINVAL)
	case !touch(event, eventSize, space.Read) || !touch(result, 4, space.Write):
		return -int64(syscall.EFAULT)
	}
	number, notify, target := *word32(event + 8), *word32(event + 12), *word32(event + 16)
	if notify != sendToThread || target != uint32(c.current) {
		return -int64(syscall.EINVAL)
	}
	timer := uint32(c.current)
	switch signal.Number(number) {
	case signal.Profile:
	case signal.Urgent:
		timer += alarms
	default:
		return -int64(syscall.EINVAL)
	}
	_, p := timerOf(uint64(timer))
	if p.Own {
		return -int64(syscall.EAGAIN)
	}
	*p = thread.Profile{Own: true}
	*word32(result) = timer
	return 0
}

// setTimer is timer_settime(2), with times from now on.
func setTimer(id, flags, value, old uint64) int64 {
	const absolute = 1
	th, p := timerOf(id)
	switch {
	case p == nil || !p.Own || flags&absolute != 0 || old != 0:
		return -int64(syscall.EINVAL)
	case !touch(value, 32, space.Read):
		return -int64(syscall.EFAULT)
	}
	interval, ok1 := nanoseconds(value, 1)
	first, ok2 := nanoseconds(value+16, 1)
	if !ok1 || !ok2 {
		return -int64(syscall.EINVAL)
	}
	p.Set(th.Used, first, interval)
	return 0
}

// deleteTimer is timer_delete(2).
func deleteTimer(id uint64) int64 {
	_, p := timerOf(id)
	if p == nil || !p.Own {
		return -int64(syscall.EINVAL)
	}
	*p = thread.Profile{}
	return 0
}

// timerOf is the timer with a number, if the thread that it is for exists, and that thread.
func timerOf(id uint64) (*thread.Thread, *thread.Profile) {
	own := id % alarms
	if id >= 2*alarms || !threads.Exists(thread.ID(own)) {
		return nil, nil
	}
	th := threads.At(thread.ID(own))
	if id >= alarms {
		return th, &th.Alarm
	}
	return th, &th.Profile
}

// setIntervalTimer is setitimer(2) for ITIMER_PROF.
func setIntervalTimer(which int, value, old uint64) int64 {
	const profile = 2
	switch {
	case which != profile:
		return -int64(syscall.EINVAL)
	case value != 0 && !touch(value, 32, space.Read), old != 0 && !touch(old, 32, space.Write):
		return -int64(syscall.EFAULT)
	}
	before := uint64(profileInterval)
	if value != 0 {
		interval, ok := nanoseconds(value, 1000)
		if !ok {
			return -int64(syscall.EINVAL)
		}
		profileInterval = interval
	}
	if old != 0 {
		clear(bytesAt(old, 32))
		*word(old), *word(old + 8) = before/1e9, before%1e9/1000
	}
	return 0
}

// nanoseconds reads a struct timespec, or with unit 1000 a struct timeval.
func nanoseconds(addr, unit uint64) (int64, bool) {
	const longest = 1 << 32 // a century, in seconds
	seconds, part := *word(addr), *word(addr + 8)
	if part >= 1e9/unit {
		return 0, false
	}
	return int64(min(seconds, longest)*1e9 + part*unit), true
}
