package task

import (
	"testing"

	"loam/abi/linux"
)

// CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE and the times of files have a granularity of 4 ms, as on Linux. So a program that
// reads CLOCK_REALTIME_COARSE and then creates a file sees no earlier modification time.
func TestCoarseClocks(t *testing.T) {
	const spec, stat, atModify, tick = dataAt, dataAt + 0x100, 88, 4_000_000
	run(t, func(u *user) {
		nano := func(addr uint64) int64 { return int64(u.load32(addr))*1e9 + int64(u.load32(addr+8)) }
		clock := func(id uint64) int64 {
			is(t, "clock_gettime", u.call(linux.SYS_CLOCK_GETTIME, id, spec), 0)
			return nano(spec)
		}
		u.store(second(u, spec)+8, []byte{0x31, 0xd4, 0x10}) // 1,102,897 ns
		is(t, "nanosleep", u.call(linux.SYS_NANOSLEEP, spec), 0)
		coarse, exact := clock(linux.CLOCK_REALTIME_COARSE), clock(linux.CLOCK_REALTIME)
		if coarse%tick != 0 || exact-coarse != exact%tick || exact == coarse {
			t.Errorf("CLOCK_REALTIME_COARSE %d, CLOCK_REALTIME %d", coarse, exact)
		}
		if coarse, exact := clock(linux.CLOCK_MONOTONIC_COARSE), clock(linux.CLOCK_MONOTONIC); exact-coarse != exact%tick {
			t.Errorf("CLOCK_MONOTONIC_COARSE %d, CLOCK_MONOTONIC %d", coarse, exact)
		}
		fd := u.call(linux.SYS_OPEN, u.text(dataAt+0x300, "/new"), linux.O_CREAT|linux.O_WRONLY, 0o644)
		is(t, "fstat", u.call(linux.SYS_FSTAT, uint64(fd), stat), 0)
		is(t, "modification time", nano(stat+atModify), coarse)
		for id, want := range map[uint64]int64{
			linux.CLOCK_REALTIME: 1, linux.CLOCK_MONOTONIC: 1, linux.CLOCK_BOOTTIME: 1,
			linux.CLOCK_REALTIME_COARSE: tick, linux.CLOCK_MONOTONIC_COARSE: tick,
		} {
			is(t, "clock_getres", u.call(linux.SYS_CLOCK_GETRES, id, spec), 0)
			is(t, "resolution", nano(spec), want)
		}
		exit(u, 0)
	})
}
