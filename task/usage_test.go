package task

import (
	"encoding/binary"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/mem"
)

// micros returns the struct timeval at an address in microseconds.
func (u *user) micros(addr uint64) int64 {
	return int64(u.load32(addr))*1_000_000 + int64(u.load32(addr+8))
}

// User time is the time in ring 3. A parent gets the times of a child from wait4, and the sum of all children from
// getrusage and times.
func TestCPUTimes(t *testing.T) {
	const rusage, tms = dataAt, dataAt + 512
	run(t, func(u *user) {
		u.spend(3 * time.Second)
		is(t, "getrusage", u.call(linux.SYS_GETRUSAGE, linux.RUSAGE_SELF, rusage), 0)
		is(t, "user time", u.micros(rusage), 3_000_000)
		is(t, "system time", u.micros(rusage+16), 0)
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
		is(t, "clock", u.call(linux.SYS_CLOCK_GETTIME, linux.CLOCK_PROCESS_CPUTIME_ID, tms), 0)
		is(t, "a sleep uses nothing", int64(u.load32(tms)), 3)
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, rusage), child)
		is(t, "user time of the child", u.micros(rusage), 5_000_000)
		is(t, "its context switches", int64(u.load32(rusage+128)), 1)
		is(t, "getrusage", u.call(linux.SYS_GETRUSAGE, 1<<64-1, rusage), 0)
		is(t, "user time of children", u.micros(rusage), 5_000_000)
		u.call(linux.SYS_TIMES, tms)
		is(t, "tms_utime", int64(u.load32(tms)), 300)
		is(t, "tms_cutime", int64(u.load32(tms+16)), 500)
		is(t, "bad who", u.call(linux.SYS_GETRUSAGE, 5, rusage), failed(linux.EINVAL))
		exit(u, 0)
	}, func(u *user) {
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0) // gives the parent time to reach its wait
		u.spend(5 * time.Second)
		exit(u, 0)
	})
}

// ITIMER_PROF sends SIGPROF each time that an interval of CPU time has passed; RLIMIT_CPU sends SIGXCPU each second,
// and SIGKILL at the hard limit.
func TestCPUTimers(t *testing.T) {
	prof, xcpu := 0, 0
	status := run(t, func(u *user) {
		install(u, linux.SIGPROF, 1, 0)
		install(u, linux.SIGXCPU, 2, 0)
		var b []byte
		for _, v := range []uint64{1, 0, 2, 0} { // it_interval and it_value: every second, for the first time after two
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		u.store(dataAt, b)
		is(t, "setitimer", u.call(linux.SYS_SETITIMER, linux.ITIMER_PROF, dataAt, 0), 0)
		for range 3 {
			u.spend(time.Second)
			u.call(linux.SYS_GETPID)
		}
		is(t, "SIGPROF", int64(prof), 2)
		is(t, "getitimer", u.call(linux.SYS_GETITIMER, linux.ITIMER_PROF, dataAt), 0)
		is(t, "left", u.micros(dataAt+16), 1_000_000)
		b = nil
		for _, v := range []uint64{5, 7} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		u.store(dataAt, b)
		is(t, "setrlimit", u.call(linux.SYS_SETRLIMIT, linux.RLIMIT_CPU, dataAt), 0)
		for range 10 {
			u.spend(time.Second)
			u.call(linux.SYS_GETPID)
		}
		t.Error("the process is alive")
	}, func(u *user) { prof++ }, func(u *user) { xcpu++ })
	is(t, "SIGXCPU", int64(xcpu), 2)
	is(t, "status", int64(status), linux.SIGKILL)
}

// limitTo sets a limit of the process.
func (u *user) limitTo(t *testing.T, resource int, cur, max uint64) {
	t.Helper()
	u.store(dataAt+0x700, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, cur), max))
	is(t, "setrlimit", u.call(linux.SYS_SETRLIMIT, uint64(resource), dataAt+0x700), 0)
}

// Limits are enforced: descriptors, sizes of files, tasks of a user, memory. A lower hard limit cannot be raised by a user.
func TestLimits(t *testing.T) {
	exceeded := 0
	run(t, func(u *user) {
		u.limitTo(t, linux.RLIMIT_NOFILE, 2, 10)
		is(t, "open", u.call(linux.SYS_OPEN, u.text(dataAt, "/file"), linux.O_CREAT|linux.O_RDWR, 0o644), 0)
		is(t, "dup", u.call(linux.SYS_DUP, 0), 1)
		is(t, "dup", u.call(linux.SYS_DUP, 0), failed(linux.EMFILE))
		is(t, "dup2", u.call(linux.SYS_DUP2, 0, 2), failed(linux.EBADF))
		is(t, "F_DUPFD", u.call(linux.SYS_FCNTL, 0, linux.F_DUPFD, 2), failed(linux.EINVAL))
		install(u, linux.SIGXFSZ, 1, 0)
		u.limitTo(t, linux.RLIMIT_FSIZE, 6, mem.Infinite)
		is(t, "write", u.call(linux.SYS_WRITE, 0, dataAt, 4), 4)
		is(t, "the rest", u.call(linux.SYS_WRITE, 0, dataAt, 4), 2)
		is(t, "too much", u.call(linux.SYS_WRITE, 0, dataAt, 4), failed(linux.EFBIG))
		is(t, "ftruncate", u.call(linux.SYS_FTRUNCATE, 0, 7), failed(linux.EFBIG))
		is(t, "SIGXFSZ", int64(exceeded), 2)
		u.limitTo(t, linux.RLIMIT_AS, 1<<20, mem.Infinite)
		is(t, "mmap", u.call(linux.SYS_MMAP, 0, 2<<20, linux.PROT_READ, linux.MAP_PRIVATE|linux.MAP_ANONYMOUS, 0, 0), failed(linux.ENOMEM))
		u.limitTo(t, linux.RLIMIT_AS, mem.Infinite, mem.Infinite)
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		u.limitTo(t, linux.RLIMIT_NPROC, 2, 2)
		child := u.fork(2)
		u.space.machine.forking = func() { t.Error("memory is copied for a process that exceeds the limit") }
		is(t, "fork", u.fork(2), failed(linux.EAGAIN))
		u.call(linux.SYS_KILL, uint64(child), linux.SIGKILL)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		u.store(dataAt, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 2), 3))
		is(t, "raise", u.call(linux.SYS_SETRLIMIT, linux.RLIMIT_NPROC, dataAt), failed(linux.EPERM))
		u.store(dataAt, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 2), 1))
		is(t, "above hard", u.call(linux.SYS_SETRLIMIT, linux.RLIMIT_NPROC, dataAt), failed(linux.EINVAL))
		exit(u, 0)
	}, func(u *user) { exceeded++ }, func(u *user) { u.call(linux.SYS_PAUSE) })
}

// Process 1 is the kernel, which has no threads. Calls about its scheduling return the values of a new process. Root may set
// other values, which have no effect.
func TestSchedulingOfProcessOne(t *testing.T) {
	run(t, func(u *user) {
		get := func() {
			t.Helper()
			is(t, "nice", u.call(linux.SYS_GETPRIORITY, linux.PRIO_PROCESS, 1), 20)
			is(t, "policy", u.call(linux.SYS_SCHED_GETSCHEDULER, 1), linux.SCHED_OTHER)
			is(t, "parameters", u.call(linux.SYS_SCHED_GETPARAM, 1, u.words(dataAt, 9)), 0)
			is(t, "priority", int64(u.load32(dataAt)), 0)
			is(t, "affinity", u.call(linux.SYS_SCHED_GETAFFINITY, 1, 8, dataAt), 8)
			is(t, "CPUs", int64(u.load32(dataAt)), 3)
		}
		set := func(want int64) {
			t.Helper()
			is(t, "set nice", u.call(linux.SYS_SETPRIORITY, linux.PRIO_PROCESS, 1, 5), want)
			is(t, "set policy", u.call(linux.SYS_SCHED_SETSCHEDULER, 1, linux.SCHED_FIFO, u.words(dataAt, 10)), want)
			is(t, "set affinity", u.call(linux.SYS_SCHED_SETAFFINITY, 1, 8, u.words(dataAt, 2, 0)), want)
		}
		get()
		set(0)
		get()
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		set(failed(linux.EPERM))
		get()
		exit(u, 0)
	})
}

// Nice values, policies and CPU sets are kept and inherited, with the checks of Linux.
func TestScheduling(t *testing.T) {
	run(t, func(u *user) {
		is(t, "getpriority", u.call(linux.SYS_GETPRIORITY, linux.PRIO_PROCESS, 0), 20)
		is(t, "setpriority", u.call(linux.SYS_SETPRIORITY, linux.PRIO_PROCESS, 0, 5), 0)
		is(t, "affinity", u.call(linux.SYS_SCHED_SETAFFINITY, 0, 8, u.words(dataAt, 2, 0)), 0)
		is(t, "bound to", int64(u.bound.Load()), 2)
		rests := u.rests.Load()
		is(t, "sched_yield", u.call(linux.SYS_SCHED_YIELD), 0)
		is(t, "sleep", u.call(linux.SYS_NANOSLEEP, u.words(dataAt, 0, 0, 1, 0), 0), 0)
		is(t, "lets other threads run", int64(u.rests.Load()-rests), 2)
		is(t, "no CPU", u.call(linux.SYS_SCHED_SETAFFINITY, 0, 8, u.words(dataAt, 4, 0)), failed(linux.EINVAL))
		is(t, "FIFO", u.call(linux.SYS_SCHED_SETSCHEDULER, 0, linux.SCHED_FIFO, u.words(dataAt, 10)), 0)
		is(t, "without a priority", u.call(linux.SYS_SCHED_SETSCHEDULER, 0, linux.SCHED_FIFO, u.words(dataAt, 0)), failed(linux.EINVAL))
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		is(t, "no process", u.call(linux.SYS_SETPRIORITY, linux.PRIO_PROCESS, 999, 5), failed(linux.ESRCH))
		exit(u, 0)
	}, func(u *user) {
		is(t, "nice", u.call(linux.SYS_GETPRIORITY, linux.PRIO_PROCESS, 0), 15)
		is(t, "policy", u.call(linux.SYS_SCHED_GETSCHEDULER, 0), linux.SCHED_FIFO)
		is(t, "affinity", u.call(linux.SYS_SCHED_GETAFFINITY, 0, 8, dataAt), 8)
		is(t, "CPUs", int64(u.load32(dataAt)), 2)
		is(t, "bound to", int64(u.bound.Load()), 2)
		is(t, "all CPUs", u.call(linux.SYS_SCHED_SETAFFINITY, 0, 8, u.words(dataAt, 7, 0)), 0)
		is(t, "bound to", int64(u.bound.Load()), 0)
		is(t, "affinity of none", u.call(linux.SYS_SCHED_GETAFFINITY, 1<<64-1, 8, dataAt), failed(linux.ESRCH))
		is(t, "affinity of none", u.call(linux.SYS_SCHED_SETAFFINITY, 1<<64-1, 8, dataAt), failed(linux.ESRCH))
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		is(t, "lower", u.call(linux.SYS_SETPRIORITY, linux.PRIO_PROCESS, 0, 0), failed(linux.EACCES))
		is(t, "higher", u.call(linux.SYS_SETPRIORITY, linux.PRIO_PROCESS, 0, 7), 0)
		is(t, "of root", u.call(linux.SYS_SETPRIORITY, linux.PRIO_PROCESS, 2, 9), failed(linux.EPERM))
		exit(u, 0)
	})
}

// A timer of timer_create(2) with a clock of CPU time expires when its process or its thread has used the time. A wait is
// no CPU time. The clocks of a thread can also be named by its ID (pthread_getcpuclockid(3)).
func TestCPUClockTimers(t *testing.T) {
	for name, clock := range map[string]func(tid int64) int64{
		"process":               func(int64) int64 { return linux.CLOCK_PROCESS_CPUTIME_ID },
		"thread":                func(int64) int64 { return linux.CLOCK_THREAD_CPUTIME_ID },
		"a thread by its ID":    func(tid int64) int64 { return ^tid<<3 | 6 },
		"a process by its ID":   func(tid int64) int64 { return ^tid<<3 | 2 },
		"the caller, by number": func(int64) int64 { return -2 },
	} {
		expired := 0
		run(t, func(u *user) {
			install(u, linux.SIGALRM, 1, 0)
			id := u.call(linux.SYS_GETTID)
			is(t, name+": timer_create", u.call(linux.SYS_TIMER_CREATE, uint64(uint32(clock(id))), 0, dataAt), 0)
			var b []byte
			for _, v := range []uint64{0, 0, 2, 0} { // it_interval and it_value: once, after two seconds
				b = binary.LittleEndian.AppendUint64(b, v)
			}
			u.store(dataAt+64, b)
			is(t, name+": timer_settime", u.call(linux.SYS_TIMER_SETTIME, uint64(u.load32(dataAt)), 0, dataAt+64, 0), 0)
			u.spend(time.Second)
			u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
			is(t, name+": signals after a second", int64(expired), 0)
			u.spend(1500 * time.Millisecond)
			for i := 0; i < 100 && expired == 0; i++ {
				u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0)
			}
			is(t, name+": signals after 2.5 s", int64(expired), 1)
			exit(u, 0)
		}, func(*user) { expired++ })
	}
	run(t, func(u *user) {
		child := u.fork(1)
		is(t, "timer_create for a thread of another process", u.call(linux.SYS_TIMER_CREATE, uint64(uint32(^child<<3|6)), 0, dataAt), failed(linux.EINVAL))
		is(t, "timer_create for another process", u.call(linux.SYS_TIMER_CREATE, uint64(uint32(^child<<3|2)), 0, dataAt), 0)
		for _, c := range []int64{^99999<<3 | 6, ^99999<<3 | 2, -1, 99} {
			is(t, "timer_create without such a clock", u.call(linux.SYS_TIMER_CREATE, uint64(uint32(c)), 0, dataAt), failed(linux.EINVAL))
		}
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}

// timerValue stores a struct itimerspec for a timer that expires once, and returns its address.
func (u *user) timerValue(seconds uint64) uint64 { return u.words64(dataAt+0x600, 0, 0, seconds, 0) }

// words64 stores 64-bit words, and returns their address.
func (u *user) words64(at uint64, words ...uint64) uint64 {
	var b []byte
	for _, v := range words {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	u.store(at, b)
	return at
}

// A timer of the clock of a thread does not count the CPU time of other threads. When the thread has ended, the timer
// can no longer be set, and its setting is zero.
func TestTimerOfOtherThread(t *testing.T) {
	const flags = linux.CLONE_VM | linux.CLONE_SIGHAND | linux.CLONE_THREAD
	const id, left = dataAt, dataAt + 64
	for clock, want := range map[int32]int64{linux.CLOCK_PROCESS_CPUTIME_ID: 1, linux.CLOCK_THREAD_CPUTIME_ID: 0} {
		expired := 0
		run(t, func(u *user) {
			install(u, linux.SIGALRM, 1, 0)
			is(t, "timer_create", u.call(linux.SYS_TIMER_CREATE, uint64(clock), 0, id), 0)
			is(t, "timer_settime", u.call(linux.SYS_TIMER_SETTIME, uint64(u.load32(id)), 0, u.timerValue(2), 0), 0)
			u.frame.R15 = 2
			thread := u.call(linux.SYS_CLONE, flags, 0, 0, 0)
			is(t, "timer_create", u.call(linux.SYS_TIMER_CREATE, uint64(uint32(^thread<<3|6)), 0, id), 0)
			timer := uint64(u.load32(id))
			is(t, "timer_settime", u.call(linux.SYS_TIMER_SETTIME, timer, 0, u.timerValue(100), 0), 0)
			for range 2 { // the signal may interrupt the first one before the thread has ended
				u.call(linux.SYS_NANOSLEEP, u.words64(dataAt+0x500, 10, 0), 0)
			}
			is(t, "signals", int64(expired), want)
			is(t, "timer_settime after the end", u.call(linux.SYS_TIMER_SETTIME, timer, 0, u.timerValue(100), 0), failed(linux.ESRCH))
			u.words64(left, 9, 9, 9, 9)
			is(t, "timer_gettime after the end", u.call(linux.SYS_TIMER_GETTIME, timer, left), 0)
			is(t, "time left", int64(u.load32(left+16)), 0)
			exit(u, 0)
		}, func(*user) { expired++ }, func(u *user) {
			u.call(linux.SYS_NANOSLEEP, second(u, dataAt+1024), 0) // the first thread waits meanwhile
			u.spend(3 * time.Second)
			u.call(linux.SYS_EXIT, 0)
		})
	}
}

// timer_settime and timer_gettime count the CPU time that the caller has used before the call.
func TestTimerOfCaller(t *testing.T) {
	const id, left = dataAt, dataAt + 64
	run(t, func(u *user) {
		compute := func(d time.Duration) { u.space.machine.spent.Add(int64(d)) } // without an interrupt
		is(t, "timer_create", u.call(linux.SYS_TIMER_CREATE, linux.CLOCK_PROCESS_CPUTIME_ID, 0, id), 0)
		compute(time.Second)
		timer := uint64(u.load32(id))
		is(t, "timer_settime", u.call(linux.SYS_TIMER_SETTIME, timer, 0, u.timerValue(5), 0), 0)
		u.spend(time.Second)
		is(t, "timer_gettime", u.call(linux.SYS_TIMER_GETTIME, timer, left), 0)
		is(t, "seconds left", int64(u.load32(left+16)), 4)
		compute(time.Second)
		is(t, "timer_gettime", u.call(linux.SYS_TIMER_GETTIME, timer, left), 0)
		is(t, "seconds left", int64(u.load32(left+16)), 3)
		exit(u, 0)
	})
}
