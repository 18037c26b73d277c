package linux

import "encoding/binary"

// Layouts of times and of timer settings. le is the byte order of x86-64.

var le = binary.LittleEndian

// Tick is the granularity of the coarse clocks, and of the times that file systems set, in nanoseconds. It is that of Linux on most
// distributions (CONFIG_HZ=250).
const Tick = 4_000_000

// ClockResolution returns the resolution of a clock in nanoseconds (clock_getres(2)).
func ClockResolution(clock int) int64 {
	if clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE {
		return Tick
	}
	return 1
}

// Timespec is struct timespec: a time in seconds and nanoseconds.
type Timespec struct{ Sec, Nsec int64 }

// SizeofTimespec is the size of a struct timespec in bytes.
const SizeofTimespec = 16

// ParseTimespec decodes a struct timespec.
func ParseTimespec(b []byte) Timespec {
	return Timespec{Sec: int64(le.Uint64(b)), Nsec: int64(le.Uint64(b[8:]))}
}

// Put encodes t into the first SizeofTimespec bytes of b.
func (t Timespec) Put(b []byte) {
	le.PutUint64(b, uint64(t.Sec))
	le.PutUint64(b[8:], uint64(t.Nsec))
}

// Nano returns t in nanoseconds.
func (t Timespec) Nano() int64 { return t.Sec*1e9 + t.Nsec }

// NanoTimespec returns a time in nanoseconds as a Timespec; Nsec is never negative.
func NanoTimespec(nano int64) Timespec {
	sec, nsec := nano/1e9, nano%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	return Timespec{sec, nsec}
}

// Timeval is struct timeval: a time in seconds and microseconds.
type Timeval struct{ Sec, Usec int64 }

// SizeofTimeval is the size of a struct timeval in bytes.
const SizeofTimeval = 16

// ParseTimeval decodes a struct timeval.
func ParseTimeval(b []byte) Timeval {
	return Timeval{Sec: int64(le.Uint64(b)), Usec: int64(le.Uint64(b[8:]))}
}

// Put encodes t into the first SizeofTimeval bytes of b.
func (t Timeval) Put(b []byte) { Timespec{t.Sec, t.Usec}.Put(b) }

// Nano returns t in nanoseconds.
func (t Timeval) Nano() int64 { return t.Sec*1e9 + t.Usec*1e3 }

// Utimbuf is struct utimbuf: two times in seconds (utime(2)).
type Utimbuf struct{ Actime, Modtime int64 }

// SizeofUtimbuf is the size of a struct utimbuf in bytes.
const SizeofUtimbuf = 16

// ParseUtimbuf decodes a struct utimbuf.
func ParseUtimbuf(b []byte) Utimbuf {
	return Utimbuf{Actime: int64(le.Uint64(b)), Modtime: int64(le.Uint64(b[8:]))}
}

// Itimerspec is struct itimerspec: Value is the time at which a timer first expires, Interval the time between later
// expirations.
type Itimerspec struct{ Interval, Value Timespec }

// SizeofItimerspec is the size of a struct itimerspec in bytes.
const SizeofItimerspec = 32

// ParseItimerspec decodes a struct itimerspec.
func ParseItimerspec(b []byte) Itimerspec {
	return Itimerspec{Interval: ParseTimespec(b), Value: ParseTimespec(b[16:])}
}

// Put encodes s into the first SizeofItimerspec bytes of b.
func (s Itimerspec) Put(b []byte) {
	s.Interval.Put(b)
	s.Value.Put(b[16:])
}

// Timex is struct timex: the state of a clock (adjtimex(2)).
type Timex struct {
	Modes                                  uint32
	Offset, Freq, Maxerror, Esterror       int64
	Status                                 int32
	Constant, Precision, Tolerance         int64
	Time                                   Timeval
	Tick, Ppsfreq, Jitter                  int64
	Shift                                  int32
	Stabil, Jitcnt, Calcnt, Errcnt, Stbcnt int64
	Tai                                    int32
}

// SizeofTimex is the size of a struct timex in bytes.
const SizeofTimex = 208

// longs returns the fields of the C type long, each with its offset in bytes.
func (t *Timex) longs() [16]struct {
	at    int
	value *int64
} {
	return [16]struct {
		at    int
		value *int64
	}{
		{8, &t.Offset}, {16, &t.Freq}, {24, &t.Maxerror}, {32, &t.Esterror},
		{48, &t.Constant}, {56, &t.Precision}, {64, &t.Tolerance}, {72, &t.Time.Sec}, {80, &t.Time.Usec},
		{88, &t.Tick}, {96, &t.Ppsfreq}, {104, &t.Jitter}, {120, &t.Stabil}, {128, &t.Jitcnt}, {136, &t.Calcnt}, {144, &t.Errcnt},
	}
}

// ParseTimex decodes a struct timex.
func ParseTimex(b []byte) Timex {
	t := Timex{
		Modes: le.Uint32(b), Status: int32(le.Uint32(b[40:])), Shift: int32(le.Uint32(b[112:])),
		Stbcnt: int64(le.Uint64(b[152:])), Tai: int32(le.Uint32(b[160:])),
	}
	for _, f := range t.longs() {
		*f.value = int64(le.Uint64(b[f.at:]))
	}
	return t
}

// Put encodes t into the first SizeofTimex bytes of b.
func (t *Timex) Put(b []byte) {
	clear(b[:SizeofTimex])
	le.PutUint32(b, t.Modes)
	le.PutUint32(b[40:], uint32(t.Status))
	le.PutUint32(b[112:], uint32(t.Shift))
	le.PutUint64(b[152:], uint64(t.Stbcnt))
	le.PutUint32(b[160:], uint32(t.Tai))
	for _, f := range t.longs() {
		le.PutUint64(b[f.at:], uint64(*f.value))
	}
}

// NanoTimeval returns a time in nanoseconds as a Timeval, rounded down to microseconds.
func NanoTimeval(nano int64) Timeval {
	t := NanoTimespec(nano)
	return Timeval{t.Sec, t.Nsec / 1e3}
}
