// Command calls makes system calls that libraries use without package os: for clocks, for locked memory, and for
// limits. It also looks for the folders that servers write to.
package main

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"example.com/guest/internal/check"
)

func main() {
	clocks()
	memory()
	limits()
	timers()
	discipline()
	identity()
	folders()
	check.Done()
}

func call(trap uintptr, args ...uintptr) (uintptr, error) {
	args = append(args, 0, 0, 0, 0)
	r, _, errno := syscall.Syscall6(trap, args[0], args[1], args[2], args[3], 0, 0)
	if errno != 0 {
		return r, errno
	}
	return r, nil
}

// near checks that a clock is near the present time.
func near(got time.Time, what string) {
	late := time.Since(got)
	check.That(late > -time.Minute && late < time.Minute, "%s is late by %v", what, late)
}

func clocks() {
	const realtimeCoarse, sysGetcpu = 5, 309
	var v syscall.Timeval
	_, err := call(syscall.SYS_GETTIMEOFDAY, uintptr(unsafe.Pointer(&v)))
	check.Nil(err, "gettimeofday")
	near(time.Unix(v.Unix()), "gettimeofday")
	s, err := call(syscall.SYS_TIME)
	check.Nil(err, "time")
	near(time.Unix(int64(s), 0), "time")
	var t syscall.Timespec
	_, err = call(syscall.SYS_CLOCK_GETTIME, realtimeCoarse, uintptr(unsafe.Pointer(&t)))
	check.Nil(err, "clock_gettime")
	near(time.Unix(t.Unix()), "the coarse clock")
	_, err = call(syscall.SYS_CLOCK_GETTIME, 99, uintptr(unsafe.Pointer(&t)))
	check.Equal(err, error(syscall.EINVAL), "a clock that is not there")
	_, err = call(syscall.SYS_CLOCK_GETRES, monotonic, uintptr(unsafe.Pointer(&t)))
	check.That(err == nil && t.Nano() > 0, "clock_getres: %v, %v", t, err)
	var used syscall.Tms
	ticks, err := syscall.Times(&used)
	check.That(err == nil && ticks > 0, "times: %d, %v", ticks, err)
	cpu := ^uint32(0)
	_, err = call(sysGetcpu, uintptr(unsafe.Pointer(&cpu)))
	check.That(err == nil && cpu < 1<<16, "getcpu: %d, %v", cpu, err)
}

// discipline checks adjtimex(2), which returns how the clock is adjusted. It sets nothing.
func discipline() {
	const sysClockAdjtime, adjtime = 305, 0x8000
	var t syscall.Timex
	state, err := syscall.Adjtimex(&t)
	check.That(err == nil && state >= 0 && state <= 5, "adjtimex: %d, %v", state, err)
	near(time.Unix(t.Time.Sec, 0), "adjtimex")
	check.That(t.Tick >= 9000 && t.Tick <= 11000 && t.Tolerance == 500<<16, "adjtimex: %+v", t)
	t = syscall.Timex{Modes: adjtime}
	_, err = syscall.Adjtimex(&t)
	check.Equal(err, error(syscall.EINVAL), "an adjustment that is none")
	for clock, want := range map[uintptr]error{realtime: nil, monotonic: syscall.EOPNOTSUPP, 99: syscall.EINVAL} {
		t = syscall.Timex{}
		_, err = call(sysClockAdjtime, clock, uintptr(unsafe.Pointer(&t)))
		check.Equal(err, want, "clock_adjtime")
	}
}

func memory() {
	b := make([]byte, 100)
	check.Nil(syscall.Mlock(b), "mlock")
	check.Nil(syscall.Munlock(b), "munlock")
}

func limits() {
	var r syscall.Rlimit
	check.Nil(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r), "getrlimit")
	r.Cur = r.Max
	check.Nil(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r), "as many descriptors as may be")
	most := r.Max
	r.Cur = 1000
	check.Nil(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r), "fewer descriptors")
	check.Nil(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r), "getrlimit")
	check.Equal(r, syscall.Rlimit{Cur: 1000, Max: most}, "what was set")
	r = syscall.Rlimit{Cur: 2, Max: 1}
	check.Equal(syscall.Setrlimit(syscall.RLIMIT_CORE, &r), error(syscall.EINVAL), "more than the most")
	r = syscall.Rlimit{}
	check.Nil(syscall.Setrlimit(syscall.RLIMIT_CORE, &r), "no core dumps")
	check.Nil(syscall.Getrlimit(syscall.RLIMIT_CORE, &r), "getrlimit")
	check.Equal(r, syscall.Rlimit{}, "no core dumps")
	n, err := call(syscall.SYS_GETPRIORITY)
	check.That(err == nil && n >= 1 && n <= 40, "getpriority: %d, %v", n, err)
}

// folders checks that the usual folders of Linux exist.
func folders() {
	for _, dir := range []string{"/run", "/var/run", "/var/log", "/var/lib", "/var/cache", "/var/tmp", "/dev/shm", "/tmp", "/srv", "/opt"} {
		st, err := os.Stat(dir)
		check.That(err == nil && st.IsDir(), "%s: %v, %v", dir, st, err)
	}
	for _, dir := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		name := filepath.Join(dir, "loam-test-calls")
		check.Nil(os.WriteFile(name, nil, 0o600), "write")
		check.Nil(os.Remove(name), "remove")
	}
}
