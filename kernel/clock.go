package kernel

import (
	"syscall"

	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Time. The time stamp counter, which runs at one speed for all CPUs, is the
// clock; the timer of the local APIC is the alarm, set for one time at a time, so
// that a machine with nothing to do does nothing.

// timekeeper turns the counter into nanoseconds. The entry code knows the offsets
// of its fields.
type timekeeper struct {
	start uint64 // the counter at time 0
	scale uint64 // nanoseconds for each tick, with 32 bits of fraction
	wall  int64  // nanoseconds since 1970 at time 0
}

var clock timekeeper // set once

// apicScale is ticks of the APIC's timer for each nanosecond, with 32 bits of
// fraction; set once.
var apicScale uint64

// now is nanoseconds since the machine began.
func (t *timekeeper) now() int64 {
	return int64(scale32(amd64.Timestamp()-t.start, t.scale))
}

// scale32 is v*by, where by has 32 bits of fraction.
func scale32(v, by uint64) uint64 {
	const half = 1<<32 - 1
	return v>>32*by + (v&half)*(by>>32) + (v&half)*(by&half)>>32
}

// calibrate measures the counter and the APIC's timer by the interval timer, and
// asks the clock of the day.
func calibrate() {
	var best measurement
	for range 10 {
		m := measure()
		if best.counter == 0 || m.doubt < best.doubt {
			best = m
		}
		if best.doubt < best.counter>>10 {
			break
		}
	}
	if best.counter == 0 || best.timer == 0 {
		must("the machine's clocks stand still")
	}
	clock.scale = (measured << 32) / best.counter
	apicScale = (best.timer << 32) / measured
	clock.start = amd64.Timestamp()
	clock.wall = amd64.DecodeRTC(amd64.ReadRTC()) * 1e9
}

// A measurement takes so long: in ticks of the interval timer, and in nanoseconds.
const (
	measuredTicks = 9546
	measured      = uint64(measuredTicks * 1_000_000_000 / amd64.PITFrequency)
)

// measurement is how far the clocks went in that time.
type measurement struct {
	counter, timer uint64
	doubt          uint64 // by how much counter may be wrong: a virtual CPU is not always running
}

func measure() measurement {
	const tries = 1e7 // no port is read in less than a nanosecond
	apic.StartTimer(1<<32 - 1)
	before := amd64.Timestamp()
	amd64.StartPIT(measuredTicks)
	begin, count := amd64.Timestamp(), apic.Timer()
	last := begin
	for range int(tries) {
		done, there := amd64.PITDone()
		if !there {
			must("the machine has no interval timer (8254) to measure the clock by")
		}
		now := amd64.Timestamp()
		if done {
			timer := uint64(count - apic.Timer())
			apic.StartTimer(0)
			return measurement{(now+last)/2 - (begin+before)/2, timer, now - last + begin - before}
		}
		last = now
	}
	must("the machine's interval timer (8254) stands still")
	return measurement{}
}

// armTimer has this CPU interrupted when there may be something to do: when the
// running thread has had its share or is to be profiled, or at the earliest
// deadline, if no other CPU is interrupted by then.
func (c *cpu) armTimer(now int64) {
	at := int64(thread.Never)
	if c.current != thread.None && threads.HasReady() {
		at = c.since + quantum
	}
	at = min(at, c.profileDeadline(now))
	if earliest := threads.Earliest(); earliest < at && !timerBefore(earliest) {
		at = earliest
	}
	if at == thread.Never || c.timer != 0 && c.timer <= at {
		return // an interrupt that comes early does no harm
	}
	c.timer = at
	const most = 1 << 31
	ticks := uint64(1)
	if at > now {
		ticks = min(scale32(uint64(at-now), apicScale)+1, most)
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
	const realtime, processTime, threadTime = 0, 2, 3
	if !touch(addr, 16, space.Write) {
		return -int64(syscall.EFAULT)
	}
	t := clock.now()
	switch id {
	case realtime:
		t += clock.wall
	case processTime:
		t += processUsed - c.chargedAt
	case threadTime:
		t += threads.At(c.current).Used - c.chargedAt
	}
	*word(addr), *word(addr + 8) = uint64(t/1e9), uint64(t%1e9)
	return 0
}
