package posix

import (
	"syscall"
	"time"
)

// adjtimex(2): how the clock is disciplined. Nobody in a program can, so it tells of a clock as Linux
// has it when nobody has begun to.

const (
	adjSingleShot = 0x0001 // ADJ_OFFSET
	adjReadOnly   = 0x2000 // ADJ_OFFSET_READONLY
	adjOld        = 0x8000 // ADJ_ADJTIME: adjtime(3)

	staUnsynchronized = 0x40
	timeError         = 5 // the state of such a clock

	worstError       = 16_000_000 // microseconds (NTP_PHASE_LIMIT)
	timeConstant     = 2          // of the loop that nobody closes
	clockPrecision   = 1          // microseconds
	mostFrequency    = 500 << 16  // parts of a million, with 16 bits of fraction
	microsecondsTick = 1_000_000 / 100
)

// Adjtimex is adjtimex(2): it fills t and returns the state of the clock. Errors: EPERM for what
// would change the clock, EINVAL.
func (p *Process) Adjtimex(t *syscall.Timex) (int, Errno) {
	switch {
	case t.Modes&adjOld != 0 && t.Modes&adjSingleShot == 0:
		return -1, syscall.EINVAL
	case t.Modes&adjOld != 0 && t.Modes&adjReadOnly == 0, t.Modes&adjOld == 0 && t.Modes != 0:
		return -1, syscall.EPERM
	}
	*t = syscall.Timex{
		Modes: t.Modes, Maxerror: worstError, Esterror: worstError, Status: staUnsynchronized, Constant: timeConstant,
		Precision: clockPrecision, Tolerance: mostFrequency, Time: syscall.NsecToTimeval(time.Now().UnixNano()), Tick: microsecondsTick,
	}
	return timeError, 0
}

// lastClock is the highest number of a clock (CLOCK_TAI of time.h).
const lastClock = 11

// ClockAdjtime is clock_adjtime(2). Errors: EOPNOTSUPP for clocks that nobody can change, and those of
// Adjtimex.
func (p *Process) ClockAdjtime(clock int, t *syscall.Timex) (int, Errno) {
	const realtime, retired = 0, 10
	const kinds, ofDescriptor = 7, 3 // of negative numbers: a descriptor's clock, or that of a processor's use
	switch {
	case clock == realtime:
		return p.Adjtimex(t)
	case clock < 0 && clock&kinds == ofDescriptor, clock > lastClock, clock == retired:
		return -1, syscall.EINVAL
	}
	return -1, syscall.EOPNOTSUPP
}
