package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
	"loam/kernel/timekeeper"
)

// The time of the day. The clock of the PC has it in seconds, and QEMU's is behind by
// up to one, as it begins with a whole second. So the loam command is asked, if it has
// started this machine: by a byte to a port, which it answers by the serial port. What
// the answer says was true at some time between the two, which is a fraction of a
// millisecond on a machine that has little else to do.

// rtcAhead is by how many seconds the PC's clock was ahead when the time was set.
var rtcAhead int64

// setWall sets the time of the day.
func setWall() {
	clock.SetWall(readWall())
	rtcAhead = amd64.DecodeRTC(amd64.ReadRTC()) - wallSeconds()
}

func wallSeconds() int64 { return (clock.now() + clock.Wall) / 1e9 }

// checkWall sets the time of the day anew if the machine was paused: its counter and its
// other clocks stood still then, and the PC's clock did not. Programs see a step, as when
// somebody sets the clock; the monotonic time does not step.
func checkWall(c *cpu) {
	const odd = 2 // seconds: two readings of whole ones may differ by one
	rtc := amd64.DecodeRTC(amd64.ReadRTC())
	if off := rtc - wallSeconds() - rtcAhead; rtc == 0 || off > -odd && off < odd {
		return
	}
	setWall()
	for n := signal.Number(1); n.Valid(); n++ { // that came among the answers
		if earlySignals&uint64(signal.Of(n)) != 0 {
			tellAny(c, int32(n))
		}
	}
	earlySignals = 0
}

// readWall is the time of the day, in nanoseconds since 1970, when the clock was at 0.
func readWall() int64 {
	if wall, ok := askWall(); ok {
		return wall
	}
	if reference.kind == hypervisor {
		at := reference.page + timekeeper.PVSize
		amd64.WriteMSR(kvmWallClock, uint64(at-windowAddress))
		if wall, ok := timekeeper.ParsePVWall(bytesAt(uint64(at), timekeeper.PVWallSize)); ok {
			return wall + int64(hypervisorTime()) - clock.now()
		}
	}
	return amd64.DecodeRTC(amd64.ReadRTC())*1e9 - clock.now()
}

// askWall asks the loam command, more than once if the answer took long; false if
// there is none.
func askWall() (wall int64, ok bool) {
	const questions, quick = 5, 1e6
	if amd64.In8(boot.PortTime) != portAnswer {
		return 0, false
	}
	shortest := int64(1<<63 - 1)
	for range questions {
		before := clock.now()
		amd64.Out8(boot.PortTime, 0)
		at, answered := awaitTime(before)
		if !answered {
			break // an answer that comes later would be taken for the next
		}
		if took := clock.now() - before; took < shortest {
			shortest, wall, ok = took, at-before-took/2, true
		}
		if shortest < quick {
			break
		}
	}
	return wall, ok
}

// awaitTime watches the serial port for an answer, for a time at most.
func awaitTime(begin int64) (nanos int64, ok bool) {
	const most = 1e9
	var r boot.TimeReader
	for clock.now()-begin < most {
		if amd64.In8(serialStatus)&serialReady == 0 {
			amd64.Pause()
			continue
		}
		b := amd64.In8(serialData)
		if nanos, ok = r.Take(b); ok {
			return nanos, true
		}
		if n := signal.Number(b); n.Valid() {
			earlySignals |= uint64(signal.Of(n))
		}
	}
	return 0, false
}

// earlySignals have come while the time was waited for.
var earlySignals uint64
