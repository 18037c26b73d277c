package kernel

import (
	"loam/abi/linux"
	"loam/kernel/signal"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// CPU profiles. The Go runtime creates a timer for each thread that runs Go code, by timer_create(2) on the clock of
// the thread's CPU time. It also sets one for the whole process, by setitimer(2), for threads without their own. Each
// time a timer expires, the thread is sent SIGPROF, and the runtime records its stack.
//
// A thread has one profiling timer, whose number is the thread's. The process timer is implemented as one timer for
// each thread that has no timer of its own. Each counts its own thread's CPU time, so samples are still taken where
// time is spent.
//
// A thread has a second timer of this kind, its alarm, which sends SIGURG. The runtime uses it to run the work of its
// monitor thread, which sleeps (runtime/loam_deferred.go). The alarm's number is the thread's plus alarms.

// charge adds the time since the last call to the CPU time of the thread that used the CPU. If a timer of the thread
// expires, charge makes its signal pending.
func (k *core) charge(c *cpu, now int64) {
	passed := now - c.chargedAt
	c.chargedAt = now
	if c.charged == thread.None || passed <= 0 {
		return
	}
	th := k.threads.At(c.charged)
	th.Used += passed
	k.processUsed += passed
	if th.Profile.Due(th.Used, k.profileInterval) {
		th.Pending |= uint64(signal.Of(signal.Profile))
		th.Sampled = true
	}
	if th.Alarm.Due(th.Used, 0) {
		th.Pending |= uint64(signal.Of(signal.Urgent))
		th.Rung = true
	}
}

// profileDeadline returns the time at which the next timer of the running thread expires, or thread.Never if it has none.
func (k *core) profileDeadline(c *cpu, now int64) int64 {
	if c.current == thread.None {
		return thread.Never
	}
	th := k.threads.At(c.current)
	if next := min(th.Profile.Next(k.profileInterval), th.Alarm.Next(0)); next != thread.Never {
		return now + max(0, next-th.Used)
	}
	return thread.Never
}

// profileInfo returns the siginfo of a SIGPROF. Its code says whether the thread's own timer or the process timer
// expired.
func profileInfo(th *thread.Thread) signal.Info {
	th.Sampled = false
	info := signal.Info{Number: signal.Profile, Code: signal.CodeKernel}
	if th.Profile.Own {
		info.Code = signal.CodeTimer
	}
	return info
}

// alarms is the offset from a thread's number to the number of its alarm timer.
const alarms = thread.Max + 1

// createTimer implements timer_create(2) for a timer of the calling thread, with the signal SIGPROF or SIGURG.
func (k *core) createTimer(c *cpu, id int, event, result uint64) int64 {
	// CLOCK_THREAD_CPUTIME_ID, the size of struct sigevent, and SIGEV_THREAD_ID
	const threadTime, eventSize, sendToThread = 3, 64, 4
	switch {
	case id != threadTime:
		return -int64(linux.EINVAL)
	case !k.touch(event, eventSize, space.Read) || !k.touch(result, 4, space.Write):
		return -int64(linux.EFAULT)
	}
	number, notify, target := *word32(event + 8), *word32(event + 12), *word32(event + 16)
	if notify != sendToThread || target != uint32(c.current) {
		return -int64(linux.EINVAL)
	}
	timer := uint32(c.current)
	switch signal.Number(number) {
	case signal.Profile:
	case signal.Urgent:
		timer += alarms
	default:
		return -int64(linux.EINVAL)
	}
	_, p := k.timerOf(uint64(timer))
	if p.Own {
		return -int64(linux.EAGAIN)
	}
	*p = thread.Profile{Own: true}
	*word32(result) = timer
	return 0
}

// setTimer implements timer_settime(2). It supports only relative times, and does not return the old setting.
func (k *core) setTimer(id, flags, value, old uint64) int64 {
	const absolute = 1
	th, p := k.timerOf(id)
	switch {
	case p == nil || !p.Own || flags&absolute != 0 || old != 0:
		return -int64(linux.EINVAL)
	case !k.touch(value, 32, space.Read):
		return -int64(linux.EFAULT)
	}
	interval, ok1 := nanoseconds(value, 1)
	first, ok2 := nanoseconds(value+16, 1)
	if !ok1 || !ok2 {
		return -int64(linux.EINVAL)
	}
	p.Set(th.Used, first, interval)
	return 0
}

// deleteTimer implements timer_delete(2).
func (k *core) deleteTimer(id uint64) int64 {
	_, p := k.timerOf(id)
	if p == nil || !p.Own {
		return -int64(linux.EINVAL)
	}
	*p = thread.Profile{}
	return 0
}

// timerOf returns the timer with a number and its thread; nil if that thread does not exist.
func (k *core) timerOf(id uint64) (*thread.Thread, *thread.Profile) {
	own := id % alarms
	if id >= 2*alarms || !k.threads.Exists(thread.ID(own)) {
		return nil, nil
	}
	th := k.threads.At(thread.ID(own))
	if id >= alarms {
		return th, &th.Alarm
	}
	return th, &th.Profile
}

// setIntervalTimer implements setitimer(2) for ITIMER_PROF.
func (k *core) setIntervalTimer(which int, value, old uint64) int64 {
	const profile = 2
	switch {
	case which != profile:
		return -int64(linux.EINVAL)
	case value != 0 && !k.touch(value, 32, space.Read), old != 0 && !k.touch(old, 32, space.Write):
		return -int64(linux.EFAULT)
	}
	before := uint64(k.profileInterval)
	if value != 0 {
		interval, ok := nanoseconds(value, 1000)
		if !ok {
			return -int64(linux.EINVAL)
		}
		k.profileInterval = interval
	}
	if old != 0 {
		clear(bytesAt(old, 32))
		*word(old), *word(old + 8) = before/1e9, before%1e9/1000
	}
	return 0
}

// longestWait is the maximum of a time that a program passes: more than a century, in seconds.
const longestWait = 1 << 32

// nanoseconds reads a struct timespec (unit 1) or a struct timeval (unit 1000). It returns false if the seconds are negative
// or the fraction is out of range.
func nanoseconds(addr, unit uint64) (int64, bool) {
	seconds, part := *word(addr), *word(addr + 8)
	if int64(seconds) < 0 || part >= 1e9/unit {
		return 0, false
	}
	return int64(min(seconds, longestWait)*1e9 + part*unit), true
}
