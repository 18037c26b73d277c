package kernel

import (
	"syscall"

	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/thread"
	"loam/kernel/timekeeper"
)

// Time. The time stamp counter, which runs at one speed for all CPUs, is the clock;
// a slower one, whose speed is known (reference.go), says how fast it runs, at the
// start and from then on; the timer of the local APIC is the alarm, set for one time
// at a time, so that a machine with nothing to do does nothing.

// clock is changed by calibrate and correct, under the lock. Its first fields are
// known to the entry code.
var clock keeper

type keeper struct{ timekeeper.Keeper }

// now is nanoseconds since the machine began. The caller has the lock, or is alone.
func (k *keeper) now() int64 { return int64(k.At(amd64.Timestamp())) }

// apicScale is ticks of the APIC's timer for each nanosecond, with 32 bits of
// fraction; set once.
var apicScale uint64

// calibrate measures the counter and the APIC's timer by the reference, starts the
// clock, and asks for the time of the day.
func calibrate() {
	openReference()
	const good = 250_000 // of doubt: a four thousandth
	best := measurement{doubt: 1<<64 - 1}
	for range 10 {
		if m := measure(); m.doubt < best.doubt {
			best = m
		}
		if best.doubt < good {
			break
		}
	}
	if known := counterScale(best.scale); known != 0 {
		best.scale, best.doubt = known, 1
	}
	apicScale = best.apic
	clock.Begin(best.end, best.scale, best.doubt)
	setWall()
}

// measurement is how fast the clocks go, as nanoseconds for each tick of the counter
// and ticks of the APIC's timer for each nanosecond, with 32 bits of fraction.
type measurement struct {
	scale, apic uint64
	doubt       uint64 // by how many nanoseconds a second scale may be wrong: a virtual CPU is not always running
	end         timekeeper.Sample
}

// measure watches them for a while. What it finds is in doubt if this CPU was away so long
// that a clock may have begun again, or between the readings of two clocks.
func measure() measurement {
	const nanos, tries = 10e6, 1e7 // no clock is read in less than a nanosecond
	apic.StartTimer(1<<32 - 1)
	begin, first, lag := sampleTimer()
	last, pause := begin.Counter, uint64(0)
	for range int(tries) {
		now := sample()
		pause = max(pause, now.Counter-last)
		last = now.Counter
		if clock.Reference.Elapsed(begin.Value, now.Value) < nanos {
			continue
		}
		end, timer, more := sampleTimer()
		apic.StartTimer(0)
		passed := clock.Reference.Elapsed(begin.Value, end.Value)
		ticks := end.Counter - begin.Counter
		m := measurement{timekeeper.Scale(passed, ticks), timekeeper.Scale(uint64(first-timer), passed),
			timekeeper.MulDiv(begin.Doubt+end.Doubt, 1e9, ticks), end}
		pause = max(pause, end.Counter-last)
		const timerRound, exact = 2e9, 100 // nanoseconds in which no timer ends; a part of the time
		if !clock.Reference.SeenWhole(ticks, pause) || passed > timerRound || max(lag, more) > ticks/exact {
			m.doubt = 1e9
		}
		return m
	}
	must("the machine's clocks stand still")
	return measurement{}
}

// sampleTimer is a sample, what the APIC's timer stood at, and how many ticks of the
// counter may lie between the two.
func sampleTimer() (s timekeeper.Sample, timer uint32, lag uint64) {
	s = sample()
	timer = apic.Timer()
	return s, timer, amd64.Timestamp() - s.Counter
}

// correct compares the clock with the reference, and the time of the day with the PC's
// clock.
func correct(c *cpu) {
	clock.Correct(sample())
	clock.Hold()
	clock.GoOn(amd64.Timestamp())
	checkWall(c)
}

// armTimer has this CPU interrupted when there may be something to do: when the
// running thread has had its share or is to be profiled, when a ready one has waited
// enough (shareWork), or at the earliest deadline, if no other CPU is interrupted by then.
func (c *cpu) armTimer(now int64) {
	at := int64(thread.Never)
	if c.current != thread.None && threads.HasReady() {
		at = c.since + quantum
	}
	if c.shareAt != 0 {
		at = min(at, c.shareAt)
	}
	at = min(at, c.profileDeadline(now))
	if earliest := min(threads.Earliest(), int64(clock.Due())); earliest < at && !timerBefore(earliest) {
		at = earliest
	}
	if at == thread.Never || c.timer != 0 && c.timer <= at {
		return // an interrupt that comes early does no harm
	}
	c.timer = at
	const most = 1 << 31
	ticks := uint64(1)
	if at > now {
		ticks = min(timekeeper.MulDiv(uint64(at-now), apicScale, 1<<32)+1, most)
	}
	apic.StartTimer(uint32(ticks))
}

// timerBefore reports whether some CPU is interrupted at a time or before.
func timerBefore(at int64) bool {
	for i := range cpuCount {
		if t := cpus[i].timer; t != 0 && t <= at {
			return true
		}
	}
	return false
}

// clockGettime is clock_gettime(2), for those who do not use loamClockGettime.
func clockGettime(c *cpu, id int, addr uint64) int64 {
	switch {
	case id < 0 || id > lastClock:
		return -int64(syscall.EINVAL)
	case !touch(addr, 16, space.Write):
		return -int64(syscall.EFAULT)
	}
	t := clock.now()
	switch id {
	case realtime, realtimeCoarse, realtimeAlarm:
		t += clock.Wall
	case processTime:
		t += processUsed - c.chargedAt
	case threadTime:
		t += threads.At(c.current).Used - c.chargedAt
	}
	*word(addr), *word(addr + 8) = uint64(t/1e9), uint64(t%1e9)
	return 0
}

// Clocks of clock_gettime(2) that are not the monotonic one, and the last that there is.
const (
	realtime       = 0
	processTime    = 2
	threadTime     = 3
	realtimeCoarse = 5
	realtimeAlarm  = 8
	lastClock      = 9
)

// clockGetres is clock_getres(2): a clock tells nanoseconds.
func clockGetres(id int, addr uint64) int64 {
	switch {
	case id < 0 || id > lastClock:
		return -int64(syscall.EINVAL)
	case addr == 0:
		return 0
	case !touch(addr, 16, space.Write):
		return -int64(syscall.EFAULT)
	}
	*word(addr), *word(addr + 8) = 0, 1
	return 0
}

// gettimeofday is gettimeofday(2). There is no time zone.
func gettimeofday(addr, zone uint64) int64 {
	if addr != 0 && !touch(addr, 16, space.Write) || zone != 0 && !touch(zone, 8, space.Write) {
		return -int64(syscall.EFAULT)
	}
	t := clock.now() + clock.Wall
	if addr != 0 {
		*word(addr), *word(addr + 8) = uint64(t/1e9), uint64(t%1e9/1e3)
	}
	if zone != 0 {
		*word(zone) = 0
	}
	return 0
}

// seconds is time(2).
func seconds(addr uint64) int64 {
	t := (clock.now() + clock.Wall) / 1e9
	if addr != 0 {
		if !touch(addr, 8, space.Write) {
			return -int64(syscall.EFAULT)
		}
		*word(addr) = uint64(t)
	}
	return t
}

// times is times(2): what the program has used, all of it its own, and the time, in
// hundredths of a second.
func times(c *cpu, addr uint64) int64 {
	const size, tick = 32, 1e7
	t := clock.now()
	if addr != 0 {
		if !touch(addr, size, space.Write) {
			return -int64(syscall.EFAULT)
		}
		clear(bytesAt(addr, size))
		*word(addr) = uint64((t + processUsed - c.chargedAt) / tick)
	}
	return t / tick
}
