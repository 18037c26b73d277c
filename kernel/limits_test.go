package kernel

import (
	"bytes"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/kernel/limit"
	"loam/kernel/thread"
)

// Calls about the machine and the program: limits, names, usage, CPUs, identities, random numbers.

// A limit is returned as it was set. The number of descriptors has a limit of its own; the hard limit may be raised.
func TestLimits(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	const infinity, core = 1<<64 - 1, 4
	get := func(resource uint64) (soft, hard uint64) {
		u.want(0, linux.SYS_GETRLIMIT, resource, at+32)
		return u.read(at + 32), u.read(at + 40)
	}
	for resource := range uint64(limit.Resources) {
		want := uint64(infinity)
		if resource == limit.Descriptors {
			want = limit.MostDescriptors
		}
		if soft, hard := get(resource); soft != want || hard != want {
			t.Errorf("resource %d: %#x and %#x", resource, soft, hard)
		}
	}
	for _, c := range []struct {
		resource, soft, hard uint64
		want                 int64
	}{
		{core, 0, infinity, 0}, {core, 0, 0, 0}, {core, 5, infinity, 0}, {core, 6, 5, -int64(linux.EINVAL)},
		{limit.Descriptors, 1024, 4096, 0}, {limit.Descriptors, limit.MostDescriptors, limit.MostDescriptors, 0},
		{limit.Descriptors, 1, limit.MostDescriptors + 1, -int64(linux.EPERM)}, {limit.Descriptors, infinity, infinity, -int64(linux.EPERM)},
		{limit.Resources, 1, 1, -int64(linux.EINVAL)}, {1 << 40, 1, 1, -int64(linux.EINVAL)},
	} {
		u.write(at, c.soft)
		u.write(at+8, c.hard)
		u.want(c.want, linux.SYS_SETRLIMIT, c.resource, at)
		if c.resource >= limit.Resources {
			u.fails(linux.EINVAL, linux.SYS_GETRLIMIT, c.resource, at)
			continue
		}
		if soft, hard := get(c.resource); c.want == 0 && (soft != c.soft || hard != c.hard) {
			t.Errorf("resource %d: %d and %d, want %d and %d", c.resource, soft, hard, c.soft, c.hard)
		}
	}
	u.write(at, 3)
	u.write(at+8, 9)
	u.want(0, linux.SYS_PRLIMIT64, programID, core, at, at+32) // returns the limits before the call
	if soft, hard := u.read(at+32), u.read(at+40); soft != 5 || hard != infinity {
		t.Errorf("the former limits: %d and %#x", soft, hard)
	}
	u.fails(linux.ESRCH, linux.SYS_PRLIMIT64, 99, core, at, 0)
	u.want(0, linux.SYS_PRLIMIT64, 0, core, 0, 0)
}

// uname(2) names a Linux release, so that programs which look at it work.
func TestUname(t *testing.T) {
	u := newUser(t)
	const field = 65
	at := u.memory(1, protRead|protWrite)
	u.write(at+field-1, 1<<64-1)
	u.want(0, linux.SYS_UNAME, at)
	texts := bytesAt(at, 6*field)
	for i, want := range []string{"Linux", "loam", release, "Loam", "x86_64", "(none)"} {
		if got, _, _ := bytes.Cut(texts[i*field:(i+1)*field], []byte{0}); string(got) != want {
			t.Errorf("field %d: %q, want %q", i, got, want)
		}
	}
}

// sysinfo(2) reports memory in bytes, the uptime, and the number of threads.
func TestSysinfo(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.clone()
	u.pass(90e9)
	u.want(0, linux.SYS_SYSINFO, at)
	free, total := u.kernel().pages.Pages()
	if uptime := u.read(at); uptime != 90 {
		t.Errorf("uptime %d", uptime)
	}
	if got := u.read(at + 32); got != total*pageSize {
		t.Errorf("%d bytes of memory, want %d", got, total*pageSize)
	}
	if got := u.read(at + 40); got != free*pageSize {
		t.Errorf("%d bytes are free, want %d", got, free*pageSize)
	}
	if threads, unit := u.read(at+80)&0xffff, u.read(at+104)&(1<<32-1); threads != 2 || unit != 1 {
		t.Errorf("%d threads, unit %d", threads, unit)
	}
}

// getrusage(2) reports the most memory that was in use, and refuses an unknown argument before it writes anything.
func TestUsage(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	inUse := func() uint64 {
		free, total := u.kernel().pages.Pages()
		return (total - free) * 4
	}
	u.want(0, linux.SYS_GETRUSAGE, 0, at)
	if got := u.read(at + 32); got != inUse() {
		t.Errorf("%d KiB, want %d", got, inUse())
	}
	const count = 100
	more := u.memory(count, protRead|protWrite)
	for i := range uint64(count) {
		u.write(more+i*pageSize, 1)
	}
	u.want(0, linux.SYS_GETRUSAGE, 0, at)
	most := inUse()
	u.want(0, linux.SYS_MUNMAP, more, count*pageSize)
	u.want(0, linux.SYS_GETRUSAGE, 1, at)
	if got := u.read(at + 32); got != most {
		t.Errorf("%d KiB, want %d", got, most)
	}
	u.write(at, 77)
	for _, who := range []int64{-2, 2, 99} {
		u.fails(linux.EINVAL, linux.SYS_GETRUSAGE, uint64(who), at)
		u.fails(linux.EINVAL, linux.SYS_GETRUSAGE, uint64(who), 8)
	}
	if got := u.read(at); got != 77 {
		t.Errorf("a call that fails stores %d", got)
	}
}

// The program may run on every CPU: the set of CPUs can be read, and set to any set with one of them.
func TestAffinity(t *testing.T) {
	for _, cpus := range []int{1, 3, 64} {
		u := newUsers(t, cpus)[0].on()
		at := u.memory(1, protRead|protWrite)
		all := ^uint64(0) >> (64 - cpus)
		for size, want := range map[uint64]int64{8: 8, 16: 8, 1024: 8, 0: -int64(linux.EINVAL), 7: -int64(linux.EINVAL), 12: -int64(linux.EINVAL)} {
			u.write(at, 0)
			u.want(want, linux.SYS_SCHED_GETAFFINITY, 0, size, at)
			if got := u.read(at); want > 0 && got != all {
				t.Errorf("%d CPUs: %#x", cpus, got)
			}
		}
		for _, c := range []struct {
			set, size uint64
			want      int64
		}{
			{1, 8, 0}, {all, 8, 0}, {1<<64 - 1, 128, 0}, {0, 8, -int64(linux.EINVAL)},
			{1, 4, 0}, {1, 1, 0}, {1, 0, -int64(linux.EINVAL)}, {0x100, 1, -int64(linux.EINVAL)},
		} {
			u.write(at, c.set)
			u.want(c.want, linux.SYS_SCHED_SETAFFINITY, 0, c.size, at)
		}
		if cpus < 64 {
			u.write(at, 1<<cpus)
			u.fails(linux.EINVAL, linux.SYS_SCHED_SETAFFINITY, 0, 8, at)
		}
	}
}

// getcpu(2) returns the CPU that runs the thread. Every argument may be missing.
func TestGetcpu(t *testing.T) {
	all := newUsers(t, 2)
	u := all[0].on()
	at := u.memory(1, protRead|protWrite)
	id := u.clone()
	all[1].on().step()
	all[1].current(id)
	for i, u := range all {
		u.on()
		u.write(at, 1<<64-1)
		u.want(0, linux.SYS_GETCPU, at, at+4)
		if got := u.read(at); got != uint64(i) {
			t.Errorf("CPU and node %#x, want CPU %d", got, i)
		}
		u.want(0, linux.SYS_GETCPU, 0, 0)
		u.want(0, linux.SYS_GETCPU, 0, at)
	}
}

// The program is process 1 of root, in a session and a process group of its own, and has no parent.
func TestIdentities(t *testing.T) {
	u := newUser(t)
	for _, number := range []uint64{
		linux.SYS_GETUID, linux.SYS_GETGID, linux.SYS_GETEUID, linux.SYS_GETEGID, linux.SYS_GETGROUPS, linux.SYS_GETPPID,
	} {
		u.want(0, number)
	}
	u.want(programID, linux.SYS_GETPID)
	u.want(programID, linux.SYS_GETPGRP)
	for _, number := range []uint64{linux.SYS_GETPGID, linux.SYS_GETSID} {
		u.want(programID, number, 0)
		u.want(programID, number, programID)
		u.fails(linux.ESRCH, number, 2)
		u.fails(linux.ESRCH, number, ^uint64(0))
	}
	u.want(int64(u.cpu.current), linux.SYS_GETTID)
	u.want(middle, linux.SYS_GETPRIORITY, 0, 0)
	u.want(0, linux.SYS_MLOCKALL, 1)
	u.want(0, linux.SYS_MUNLOCKALL)
	u.fails(linux.ENOENT, linux.SYS_OPEN, 0, 0)
	u.fails(linux.ENOENT, linux.SYS_OPENAT, 0, 0)
}

// The base of thread-local storage belongs to a thread, and must be an address: a processor faults if it loads another one.
func TestThreadBase(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	const set, get, msrFSBase = 0x1002, 0x1003, 0xc000_0100
	loaded := func(want uint64) {
		t.Helper()
		if got := u.msrs[msrFSBase]; got != want {
			t.Errorf("the processor has the base %#x, want %#x", got, want)
		}
	}
	u.want(0, linux.SYS_ARCH_PRCTL, set, at)
	loaded(at)
	u.want(0, linux.SYS_ARCH_PRCTL, get, at+8)
	if got := u.read(at + 8); got != at {
		t.Errorf("base %#x, want %#x", got, at)
	}
	u.fails(linux.EINVAL, linux.SYS_ARCH_PRCTL, 0x1001, at)
	for _, bad := range []uint64{1 << 47, 1 << 62, 0xffff_0000_0000_0000, 0xffff_7fff_ffff_ffff} {
		u.fails(linux.EPERM, linux.SYS_ARCH_PRCTL, set, bad)
		u.fails(linux.EPERM, linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD|linux.CLONE_SETTLS, at+pageSize, 0, 0, bad)
	}
	for _, good := range []uint64{0, 1<<47 - 1, 0xffff_8000_0000_0000, 1<<64 - 8} {
		u.want(0, linux.SYS_ARCH_PRCTL, set, good)
		loaded(good)
	}
	first := u.cpu.current
	id := thread.ID(u.call(linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD|linux.CLONE_SETTLS, at+pageSize, 0, 0, at+16))
	loaded(1<<64 - 8)
	u.yields(1)
	u.current(id)
	loaded(at + 16)
	u.call(linux.SYS_EXIT)
	u.current(first)
	loaded(1<<64 - 8)
	if n := u.thread(first).FSBase; n != 1<<64-8 {
		t.Errorf("base %#x", n)
	}
}

// A name that is too long is cut off.
func TestThreadName(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	const setName, getName, other = 15, 16, 4
	for name, want := range map[string]string{"": "", "short": "short", "exactly fifteen": "exactly fifteen", "sixteen is cut!!": "sixteen is cut!"} {
		u.write(at, 0)
		clear(bytesAt(at, 16))
		copy(bytesAt(at, 16), name)
		u.want(0, linux.SYS_PRCTL, setName, at)
		u.want(0, linux.SYS_PRCTL, getName, at+32)
		if got, _, _ := strings.Cut(string(bytesAt(at+32, 16)), "\x00"); got != want {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	u.fails(linux.EINVAL, linux.SYS_PRCTL, other, at)
}

// Without a source of random numbers, getrandom(2) returns none that an attacker could guess, and the console says why.
func TestRandomWithoutSource(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	k := u.kernel()
	k.startRandom()
	u.fails(linux.EAGAIN, linux.SYS_GETRANDOM, at, 16, 0)
	if !strings.Contains(string(u.machine.output), "the machine has no random numbers: give it") {
		t.Errorf("output %s", u.machine.output)
	}
	u.want(0, CallStir, 1, 2) // a driver has found a device
	u.want(16, linux.SYS_GETRANDOM, at, 16, 0)
	if u.read(at) == 0 || u.read(at) == u.read(at+8) {
		t.Errorf("random numbers %#x, %#x", u.read(at), u.read(at+8))
	}
}

// getrandom(2) returns 4096 bytes at most, and never the same ones. Unknown flags are refused.
func TestGetrandom(t *testing.T) {
	u := newUser(t)
	at := u.memory(3, protRead|protWrite)
	k := u.kernel()
	k.have.Random = true
	k.startRandom()
	seen := map[uint64]bool{}
	for range 100 {
		u.want(8, linux.SYS_GETRANDOM, at, 8, 0)
		seen[u.read(at)] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different numbers of 100", len(seen))
	}
	u.want(0, linux.SYS_GETRANDOM, at, 0, 0)
	u.write(at+4096, 99)
	u.want(4096, linux.SYS_GETRANDOM, at, 8192, 0)
	if v := u.read(at + 4096); v != 99 {
		t.Errorf("the byte after the result is %d", v)
	}
	const nonblock, random, insecure = 1, 2, 4
	for flags, want := range map[uint64]int64{
		nonblock: 8, random: 8, insecure: 8, nonblock | random: 8, nonblock | insecure: 8,
		random | insecure: -int64(linux.EINVAL), 7: -int64(linux.EINVAL), 8: -int64(linux.EINVAL),
	} {
		u.want(want, linux.SYS_GETRANDOM, at, 8, flags)
	}
}

// The processor's source is read at the start, and again if a minute has passed. A source that fails or that returns the same
// number for ever is not used.
func TestRandomSource(t *testing.T) {
	for _, c := range []struct {
		what   string
		source func(n int) (uint64, bool)
		seeded bool
		reads  int
	}{
		{"works", func(n int) (uint64, bool) { return uint64(n), true }, true, 4},
		{"works at the second try", func(n int) (uint64, bool) { return uint64(n), n%2 == 0 }, true, 8},
		{"fails", func(int) (uint64, bool) { return 1, false }, false, 10},
		{"is stuck", func(int) (uint64, bool) { return 1<<64 - 1, true }, false, 4},
		{"fails later", func(n int) (uint64, bool) { return uint64(n), n < 3 }, false, 12},
	} {
		u := newUser(t)
		at, k, reads := u.memory(1, protRead|protWrite), u.kernel(), 0
		k.have.Random = true
		u.machine.random = func() (uint64, bool) {
			reads++
			return c.source(reads)
		}
		k.startRandom()
		if got := k.seeded.Load(); got != c.seeded || reads != c.reads {
			t.Errorf("%s: seeded %v, %d reads", c.what, got, reads)
		}
		if !c.seeded {
			continue
		}
		u.want(8, linux.SYS_GETRANDOM, at, 8, 0)
		u.pass(stirInterval / 2)
		u.want(8, linux.SYS_GETRANDOM, at, 8, 0)
		if reads != c.reads {
			t.Errorf("%s: the source is read after half a minute", c.what)
		}
		u.pass(stirInterval)
		u.want(8, linux.SYS_GETRANDOM, at, 8, 0)
		if reads == c.reads {
			t.Errorf("%s: the source is not read after a minute", c.what)
		}
	}
}
