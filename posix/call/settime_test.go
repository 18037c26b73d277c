package call

import (
	"math"
	"testing"
	"time"

	"loam/abi/linux"
)

// The calls that set clocks check their arguments as on Linux, and then return EPERM.
func TestSetTime(t *testing.T) {
	const bad, zone = 5, base + 32
	const second, most = int64(time.Second), math.MaxInt64/int64(time.Second) - 30*365*24*3600 // a clock must not overflow within 30 years
	c, m := newCaller(t, 64)
	set := func(clock int, sec, nsec int64, want linux.Errno) {
		t.Helper()
		linux.Timespec{Sec: sec, Nsec: nsec}.Put(m.bytes)
		fails(t, c, want, linux.SYS_CLOCK_SETTIME, uint64(clock), base)
	}
	set(linux.CLOCK_REALTIME, 1, 0, linux.EPERM)
	set(linux.CLOCK_REALTIME, 1, second, linux.EINVAL)
	set(linux.CLOCK_REALTIME, most-1, second-1, linux.EPERM)
	set(linux.CLOCK_REALTIME, most, 0, linux.EINVAL)
	set(linux.CLOCK_REALTIME, 1<<40, 0, linux.EINVAL)
	set(linux.CLOCK_MONOTONIC, 1, 0, linux.EINVAL)
	clockOf := func(process int) int { return ^process<<3 | 2 }
	set(clockOf(0), 1, -1, linux.EPERM)
	set(clockOf(7), 1, 0, linux.EPERM) // the caller's own number
	set(clockOf(999999), 1, 0, linux.EINVAL)
	set(-1, 1, 0, linux.EINVAL)
	fails(t, c, linux.EFAULT, linux.SYS_CLOCK_SETTIME, uint64(clockOf(999999)), bad)
	day := func(sec, usec int64, zone uint64, want linux.Errno) {
		t.Helper()
		linux.Timeval{Sec: sec, Usec: usec}.Put(m.bytes)
		fails(t, c, want, linux.SYS_SETTIMEOFDAY, base, zone)
	}
	day(1, 0, 0, linux.EPERM)
	day(1, 0, zone, linux.EPERM)
	day(1<<40, 0, bad, linux.EFAULT)
	day(1<<40, 0, zone, linux.EINVAL)
	day(1, 1000000, bad, linux.EFAULT)
	day(1, 1000000, zone, linux.EINVAL)
	day(1, -1, bad, linux.EINVAL)
	day(1, -1<<63, 0, linux.EINVAL)
	fails(t, c, linux.EFAULT, linux.SYS_SETTIMEOFDAY, 0, bad)
	fails(t, c, linux.EPERM, linux.SYS_SETTIMEOFDAY, 0, zone)
	fails(t, c, linux.EPERM, linux.SYS_SETTIMEOFDAY, 0, 0)
}
