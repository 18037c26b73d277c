package kernel

import (
	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/thread"
	"loam/kernel/timekeeper"
)

// Time. The time stamp counter is the clock; it runs at the same rate on all CPUs. A slower reference clock of
// known frequency (reference.go) calibrates it at the start and corrects it from then on. The local APIC's timer is
// the alarm. It is armed for a single deadline, so an idle machine takes no periodic interrupts.

// keeper is a timekeeper.Keeper that reads the time stamp counter.
type keeper struct{ timekeeper.Keeper }

// now returns nanoseconds since the clock started. The caller holds the kernel's lock, or no other CPU runs
// yet.
func (k *keeper) now() int64 { return int64(k.At(amd64.Timestamp())) }

// calibrate measures the counter and the APIC's timer against the reference, starts the clock and sets the wall
// clock.
func (k *core) calibrate() {
	k.openReference()
	const good = 250_000 // an error of at most 1/4000, in nanoseconds per second
	best := measurement{doubt: 1<<64 - 1}
	for range 10 {
		if m := k.measure(); m.doubt < best.doubt {
			best = m
		}
		if best.doubt < good {
			break
		}
	}
	if known := k.counterScale(best.scale); known != 0 {
		best.scale, best.doubt = known, 1
	}
	k.apicScale = best.apic
	k.clock.Begin(best.end, best.scale, best.doubt)
	k.setWall()
}

// measurement holds measured clock rates as fixed-point numbers with 32 fraction bits: scale in nanoseconds for each tick of
// the counter, and apic in ticks of the APIC's timer for each nanosecond.
type measurement struct {
	scale, apic uint64
	doubt       uint64 // possible error of scale, in nanoseconds per second
	end         timekeeper.Sample
}

// measure compares the clocks for 10 ms. The result is marked as unreliable (doubt 1e9) if the CPU was descheduled
// between the readings of two clocks, or so long that a clock may have wrapped around.
func (k *core) measure() measurement {
	// duration of a measurement in nanoseconds, and the maximum number of readings, which take at least a nanosecond each
	const nanos, tries = 10e6, 1e7
	k.apic.StartTimer(1<<32 - 1)
	begin, first, lag := k.sampleTimer()
	last, pause := begin.Counter, uint64(0)
	for range int(tries) {
		now := k.sample()
		pause = max(pause, now.Counter-last)
		last = now.Counter
		if k.clock.Reference.Elapsed(begin.Value, now.Value) < nanos {
			continue
		}
		end, timer, more := k.sampleTimer()
		k.apic.StartTimer(0)
		passed := k.clock.Reference.Elapsed(begin.Value, end.Value)
		ticks := end.Counter - begin.Counter
		m := measurement{timekeeper.Scale(passed, ticks), timekeeper.Scale(uint64(first-timer), passed),
			timekeeper.MulDiv(begin.Doubt+end.Doubt, 1e9, ticks), end}
		pause = max(pause, end.Counter-last)
		const timerRound = 2e9 // time in nanoseconds in which the APIC's timer cannot count down to 0
		const exact = 100      // the lag between two readings may be at most this fraction of the interval
		if !k.clock.Reference.SeenWhole(ticks, pause) || passed > timerRound || max(lag, more) > ticks/exact {
			m.doubt = 1e9
		}
		return m
	}
	k.must("the machine's clocks stand still")
	return measurement{}
}

// sampleTimer returns a sample of the reference, the value of the APIC's timer, and the maximum number of counter ticks
// between the two readings.
func (k *core) sampleTimer() (s timekeeper.Sample, timer uint32, lag uint64) {
	s = k.sample()
	timer = k.apic.Timer()
	return s, timer, amd64.Timestamp() - s.Counter
}

// correct compares the clock with the reference, and the wall clock with the real-time clock (RTC).
func (k *core) correct(c *cpu) {
	k.clock.Correct(k.sample())
	k.clock.Hold()
	k.clock.GoOn(amd64.Timestamp())
	k.publishClock()
	k.checkWall(c)
}

// armTimer sets this CPU's timer to the earliest of these times: the running thread's quantum ends while another is
// ready; the running thread is due for a profiling signal; a ready thread has to be handed to an idle CPU
// (shareWork); the earliest deadline of all threads, of the poller (poller.go) or of the clock correction, unless another CPU's timer
// expires by then.
func (k *core) armTimer(c *cpu, now int64) {
	at := int64(thread.Never)
	if c.current != thread.None && k.threads.HasReady() {
		at = c.since + quantum
	}
	if c.shareAt != 0 {
		at = min(at, c.shareAt)
	}
	at = min(at, k.profileDeadline(c, now))
	if earliest := min(k.threads.Earliest(), k.poller.until, int64(k.clock.Due())); earliest < at && !k.timerBefore(earliest) {
		at = earliest
	}
	if at == thread.Never || c.timer != 0 && c.timer <= at {
		return // the armed timer expires a little earlier, which does no harm
	}
	c.timer = at
	const most = 1 << 31
	ticks := uint64(1)
	if at > now {
		ticks = min(timekeeper.MulDiv(uint64(at-now), k.apicScale, 1<<32)+1, most)
	}
	k.apic.StartTimer(uint32(ticks))
}

// timerBefore reports whether the timer of some CPU expires at or before a time.
func (k *core) timerBefore(at int64) bool {
	for i := range k.cpuCount {
		if t := k.cpus[i].timer; t != 0 && t <= at {
			return true
		}
	}
	return false
}

// clockGettime implements clock_gettime(2) for callers that do not use the fast path of the runtime (loamClockGettime).
func (k *core) clockGettime(c *cpu, id int, addr uint64) int64 {
	id = systemClock(id)
	switch {
	case id < 0:
		return -int64(linux.EINVAL)
	case !k.touch(addr, 16, space.Write):
		return -int64(linux.EFAULT)
	}
	t := k.clock.now()
	switch id {
	// CLOCK_TAI equals CLOCK_REALTIME: leap seconds are not known, as on Linux without an NTP daemon
	case realtime, realtimeCoarse, realtimeAlarm, tai:
		t += k.clock.Wall
	case processTime:
		t += k.processUsed - c.chargedAt
	case threadTime:
		t += k.threads.At(c.current).Used - c.chargedAt
	}
	t -= t % linux.ClockResolution(id)
	*word(addr), *word(addr + 8) = uint64(t/1e9), uint64(t%1e9)
	return 0
}

// Numbers of clocks (clock_gettime(2)).
const (
	realtime        = 0
	monotonic       = 1
	processTime     = 2
	threadTime      = 3
	rawMonotonic    = 4
	realtimeCoarse  = 5
	monotonicCoarse = 6
	boottime        = 7
	realtimeAlarm   = 8
	bootAlarm       = 9
	tai             = 11
)

// systemClock returns the number of a clock. A negative ID refers to the CPU clock of a process or a thread
// (clock_getres(2)). If it contains process or thread 0, which means the caller, systemClock returns processTime or
// threadTime. The result is negative if the clock does not exist or belongs to another thread.
func systemClock(id int) int {
	switch {
	case id >= -8 && id <= -6:
		return processTime
	case id >= -4 && id <= -2:
		return threadTime
	case id > bootAlarm && id != tai:
		return -1
	}
	return id
}

// clockGetres implements clock_getres(2).
func (k *core) clockGetres(id int, addr uint64) int64 {
	id = systemClock(id)
	switch {
	case id < 0:
		return -int64(linux.EINVAL)
	case addr == 0:
		return 0
	case !k.touch(addr, 16, space.Write):
		return -int64(linux.EFAULT)
	}
	*word(addr), *word(addr + 8) = 0, uint64(linux.ClockResolution(id))
	return 0
}

// gettimeofday implements gettimeofday(2). The time zone is always UTC.
func (k *core) gettimeofday(addr, zone uint64) int64 {
	if addr != 0 && !k.touch(addr, 16, space.Write) || zone != 0 && !k.touch(zone, 8, space.Write) {
		return -int64(linux.EFAULT)
	}
	t := k.clock.now() + k.clock.Wall
	if addr != 0 {
		*word(addr), *word(addr + 8) = uint64(t/1e9), uint64(t%1e9/1e3)
	}
	if zone != 0 {
		*word(zone) = 0
	}
	return 0
}

// seconds implements time(2).
func (k *core) seconds(addr uint64) int64 {
	t := (k.clock.now() + k.clock.Wall) / 1e9
	if addr != 0 {
		if !k.touch(addr, 8, space.Write) {
			return -int64(linux.EFAULT)
		}
		*word(addr) = uint64(t)
	}
	return t
}

// times implements times(2). It stores the CPU time of the program, all of it as user time, and returns the time since the
// clock started. Both are in hundredths of a second.
func (k *core) times(c *cpu, addr uint64) int64 {
	const size, tick = 32, 1e7
	t := k.clock.now()
	if addr != 0 {
		if !k.touch(addr, size, space.Write) {
			return -int64(linux.EFAULT)
		}
		clear(bytesAt(addr, size))
		*word(addr) = uint64((t + k.processUsed - c.chargedAt) / tick)
	}
	return t / tick
}
