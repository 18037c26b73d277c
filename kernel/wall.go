package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
	"loam/kernel/timekeeper"
)

// The wall clock. The PC's real-time clock (RTC) counts whole seconds, and QEMU's lags by up to one second. A kernel
// that the loam command has started therefore asks it for the time: it writes a byte to a port, and the answer arrives
// on the serial port. The answer was correct at some time between the question and its arrival, an interval of less
// than a millisecond on a machine with little other work.

// setWall sets the wall clock.
func (k *core) setWall() {
	k.clock.SetWall(k.readWall())
	k.publishClock()
	k.rtcAhead = amd64.DecodeRTC(amd64.ReadRTC()) - k.wallSeconds()
}

// wallSeconds returns the wall clock time in seconds since 1970.
func (k *core) wallSeconds() int64 { return (k.clock.now() + k.clock.Wall) / 1e9 }

// checkWall sets the wall clock again after the machine was paused. During a pause the counter and most clocks
// stand still, but the RTC does not. Programs see a step of the wall clock, as when an administrator sets it; the
// monotonic clock does not step.
func (k *core) checkWall(c *cpu) {
	const odd = 2 // tolerance in seconds: two readings of a clock that counts whole seconds may differ by one
	rtc := amd64.DecodeRTC(amd64.ReadRTC())
	if off := rtc - k.wallSeconds() - k.rtcAhead; rtc == 0 || off > -odd && off < odd {
		return
	}
	k.setWall()
	for n := signal.Number(1); n.Valid(); n++ { // deliver the signals that arrived on the serial port while setWall waited for answers
		if k.earlySignals&uint64(signal.Of(n)) != 0 {
			k.signalProgram(c, int32(n))
		}
	}
	k.earlySignals = 0
}

// readWall returns the wall clock time at which the kernel's clock was 0, in nanoseconds since 1970. Its sources in
// order: the loam command, the hypervisor, the RTC.
func (k *core) readWall() int64 {
	if wall, ok := k.askWall(); ok {
		return wall
	}
	if k.reference.kind == hypervisor {
		at := k.reference.page + timekeeper.PVSize
		amd64.WriteMSR(kvmWallClock, uint64(at-k.window))
		if wall, ok := timekeeper.ParsePVWall(bytesAt(uint64(at), timekeeper.PVWallSize)); ok {
			return wall + int64(k.hypervisorTime()) - k.clock.now()
		}
	}
	return amd64.DecodeRTC(amd64.ReadRTC())*1e9 - k.clock.now()
}

// askWall asks the loam command for the time, and asks again, up to five times, while answers take longer than a
// millisecond. It uses the fastest answer; false if there is none.
func (k *core) askWall() (wall int64, ok bool) {
	const questions, quick = 5, 1e6
	if amd64.In8(boot.PortTime) != portAnswer {
		return 0, false
	}
	shortest := int64(1<<63 - 1)
	for range questions {
		before := k.clock.now()
		amd64.Out8(boot.PortTime, 0)
		at, answered := k.awaitTime(before)
		if !answered {
			break // a late answer would be mistaken for the answer to the next question
		}
		if took := k.clock.now() - before; took < shortest {
			shortest, wall, ok = took, at-before-took/2, true
		}
		if shortest < quick {
			break
		}
	}
	return wall, ok
}

// awaitTime polls the serial port for an answer, for at most a second after begin. Signals that arrive meanwhile go
// to earlySignals.
func (k *core) awaitTime(begin int64) (nanos int64, ok bool) {
	const most = 1e9
	var r boot.TimeReader
	for k.clock.now()-begin < most {
		if amd64.In8(serialStatus)&serialReady == 0 {
			amd64.Pause()
			continue
		}
		b := amd64.In8(serialData)
		if nanos, ok = r.Take(b); ok {
			return nanos, true
		}
		if n := signal.Number(b); n.Valid() {
			k.earlySignals |= uint64(signal.Of(n))
		}
	}
	return 0, false
}
