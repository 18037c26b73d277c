package posix

import (
	"time"

	"loam/abi/linux"
)

// adjtimex(2): clock discipline. No program can adjust the clock, so the calls report a clock that has
// never been synchronized, as Linux does before an NTP daemon runs.

const (
	adjReadOnly = 0x2000 // ADJ_OFFSET_READONLY: only return the remaining adjustment
	adjOld      = 0x8000 // ADJ_ADJTIME: emulate adjtime(3)

	worstError       = 16_000_000 // maximum error of an unsynchronized clock in microseconds (NTP_PHASE_LIMIT)
	timeConstant     = 2          // constant of the phase-locked loop, which is not running
	clockPrecision   = 1          // precision of the clock in microseconds
	mostFrequency    = 500 << 16  // maximum frequency offset in parts per million, with 16 fraction bits
	microsecondsTick = 1_000_000 / 100
)

// Adjtimex implements adjtimex(2). It fills in t and returns the state of the clock. Errors: EPERM for
// a request that would adjust the clock, EINVAL.
func (p *Process) Adjtimex(t *linux.Timex) (int, Errno) {
	switch {
	case t.Modes&adjOld != 0 && t.Modes&linux.ADJ_OFFSET == 0:
		return -1, linux.EINVAL
	case t.Modes&adjOld != 0 && t.Modes&adjReadOnly == 0, t.Modes&adjOld == 0 && t.Modes != 0:
		return -1, linux.EPERM
	}
	*t = linux.Timex{
		Modes: t.Modes, Maxerror: worstError, Esterror: worstError, Status: linux.STA_UNSYNC, Constant: timeConstant,
		Precision: clockPrecision, Tolerance: mostFrequency, Time: linux.NanoTimeval(time.Now().UnixNano()), Tick: microsecondsTick,
	}
	return linux.TIME_ERROR, 0
}

// ClockAdjtime implements clock_adjtime(2). Errors: EOPNOTSUPP for clocks that cannot be adjusted, and
// the errors of Adjtimex.
func (p *Process) ClockAdjtime(clock int, t *linux.Timex) (int, Errno) {
	const realtime, retired = 0, 10
	// the low three bits of a negative clock ID give the kind: 3 is the clock of a descriptor, others are CPU-time clocks
	const kinds, ofDescriptor = 7, 3
	switch {
	case clock == realtime:
		return p.Adjtimex(t)
	case clock < 0 && clock&kinds == ofDescriptor, clock > linux.CLOCK_TAI, clock == retired:
		return -1, linux.EINVAL
	}
	return -1, linux.EOPNOTSUPP
}
