package kernel

import (
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// System calls, faults and waits of a core on a model of a machine with one CPU.

// Flags and rights of mmap(2).
const (
	protNone, protRead, protWrite = 0, 1, 2
	mapPrivate, mapFixed, mapAnon = 2, 0x10, 0x20
)

const pageSize = amd64.PageSize

// user is a test's view of the program on one CPU.
type user struct {
	*modelCPU
	t *testing.T
}

// newUser returns the program of a machine with one CPU.
func newUser(t *testing.T) user { return newUsers(t, 1)[0] }

// want makes a system call and checks its result.
func (u user) want(result int64, number uint64, args ...uint64) {
	u.t.Helper()
	if got := u.call(number, args...); got != result {
		u.t.Errorf("call %d with %#x returns %d, want %d", number, args, got, result)
	}
}

// fails makes a system call and checks its error.
func (u user) fails(errno linux.Errno, number uint64, args ...uint64) {
	u.t.Helper()
	u.want(-int64(errno), number, args...)
}

// memory maps pages for the program.
func (u user) memory(pages, prot uint64) uint64 {
	u.t.Helper()
	at := u.call(linux.SYS_MMAP, 0, pages*pageSize, prot, mapPrivate|mapAnon)
	if at < 0 {
		u.t.Fatalf("mmap returns %d", at)
	}
	return uint64(at)
}

// write stores a word in the program's memory.
func (u user) write(addr, v uint64) {
	u.t.Helper()
	if !u.access(addr, true) {
		u.t.Fatalf("a write at %#x fails", addr)
	}
	*u.modelCPU.memory(addr) = v
}

// read loads a word from the program's memory.
func (u user) read(addr uint64) uint64 {
	u.t.Helper()
	if !u.access(addr, false) {
		u.t.Fatalf("a read at %#x fails", addr)
	}
	return *u.modelCPU.memory(addr)
}

// handle installs a handler for a signal, which blocks all signals.
func (u user) handle(n signal.Number) {
	u.t.Helper()
	at := u.memory(1, protRead|protWrite)
	u.write(at, modelHandler)
	u.write(at+24, 1<<64-1)
	u.want(0, linux.SYS_RT_SIGACTION, uint64(n), at, 0, 8)
}

// stack gives the current thread a stack.
func (u user) stack() {
	u.t.Helper()
	const pages = 4
	frameOf(u.page()).SP = u.memory(pages, protRead|protWrite) + pages*pageSize
}

// handled checks that the thread is in its handler of a signal, and returns from the handler.
func (u user) handled(n signal.Number) signal.Frame {
	u.t.Helper()
	if f := frameOf(u.page()); f.DI != uint64(n) {
		u.t.Fatalf("the thread is at %#x with signal %d, want the handler of signal %d", f.IP, f.DI, n)
	}
	return u.returnsFrom(n)
}

// Memory is zeroed at its first use and after madvise(2), keeps its content while it is inaccessible, and is lost
// when it is unmapped.
func TestMemory(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(signal.Segment)
	at := u.memory(3, protRead|protWrite)
	for i := range uint64(3) {
		if v := u.read(at + i*pageSize); v != 0 {
			t.Errorf("new memory contains %#x", v)
		}
		u.write(at+i*pageSize, i+1)
	}
	u.want(0, linux.SYS_MPROTECT, at+pageSize, pageSize, protNone)
	if u.access(at+pageSize, false) {
		t.Error("memory without rights is readable")
	} else if f := u.handled(signal.Segment); f.Info.Code != signal.CodeNotAllowed || f.Info.Value != at+pageSize {
		t.Errorf("code %d and address %#x", f.Info.Code, f.Info.Value)
	}
	u.want(0, linux.SYS_MPROTECT, at+pageSize, pageSize, protRead)
	if v := u.read(at + pageSize); v != 2 {
		t.Errorf("memory that was inaccessible contains %d, want 2", v)
	}
	if u.access(at+pageSize, true) {
		t.Error("memory that is readable only is written")
	} else {
		u.handled(signal.Segment)
	}
	const dontNeed = 4
	u.want(0, linux.SYS_MADVISE, at, pageSize, dontNeed)
	if v := u.read(at); v != 0 {
		t.Errorf("memory that is not needed contains %d", v)
	}
	u.want(0, linux.SYS_MUNMAP, at+2*pageSize, pageSize)
	if u.access(at+2*pageSize, false) {
		t.Error("unmapped memory is readable")
	} else if f := u.handled(signal.Segment); f.Info.Code != signal.CodeNotMapped {
		t.Errorf("code %d", f.Info.Code)
	}
	u.want(int64(at+2*pageSize), linux.SYS_MMAP, at+2*pageSize, pageSize, protRead, mapPrivate|mapAnon|mapFixed)
	if v := u.read(at + 2*pageSize); v != 0 {
		t.Errorf("memory that is mapped again contains %d", v)
	}
}

// A mapping that is changed inside a big page is split, and its other pages keep their content.
func TestBigPages(t *testing.T) {
	u := newUser(t)
	const size = 4 * amd64.BigPageSize
	at := u.memory(size/pageSize, protRead|protWrite)
	for offset := uint64(0); offset < size; offset += pageSize {
		u.write(at+offset, offset+1)
	}
	big := uint64(0)
	for va := at; va < at+size; va += amd64.BigPageSize {
		if _, size := u.machine.core.tables.Lookup(va); size == amd64.BigPageSize {
			big = va
		}
	}
	if big == 0 {
		t.Fatal("memory that is filled upwards has no big page")
	}
	u.want(0, linux.SYS_MUNMAP, big+5*pageSize, pageSize)
	u.want(0, linux.SYS_MPROTECT, big+7*pageSize, pageSize, protRead)
	for va := at; va < at+size; va += pageSize {
		if va == big+5*pageSize {
			continue
		}
		if v := u.read(va); v != va-at+1 {
			t.Fatalf("%#x contains %#x, want %#x", va, v, va-at+1)
		}
	}
	u.want(0, linux.SYS_MUNMAP, at, size)
}

// mremap(2) grows memory in place or moves it, with its content.
func TestMremap(t *testing.T) {
	u := newUser(t)
	const mayMove = 1
	at := u.memory(2, protRead|protWrite)
	u.write(at, 1)
	u.write(at+pageSize, 2)
	u.want(int64(at), linux.SYS_MREMAP, at, 2*pageSize, pageSize, 0)
	u.want(int64(at), linux.SYS_MREMAP, at, pageSize, 2*pageSize, 0)
	if v := u.read(at + pageSize); v != 0 {
		t.Errorf("memory that was cut off and added contains %d", v)
	}
	u.want(int64(at+2*pageSize), linux.SYS_MMAP, at+2*pageSize, pageSize, protRead, mapPrivate|mapAnon|mapFixed)
	u.fails(linux.ENOMEM, linux.SYS_MREMAP, at, 2*pageSize, 3*pageSize, 0)
	to := u.call(linux.SYS_MREMAP, at, 2*pageSize, 3*pageSize, mayMove)
	if to < 0 || uint64(to) == at {
		t.Fatalf("mremap returns %#x", to)
	}
	if v := u.read(uint64(to)); v != 1 {
		t.Errorf("moved memory contains %d", v)
	}
	u.fails(linux.EFAULT, linux.SYS_MREMAP, at, pageSize, pageSize, 0)
	u.fails(linux.EINVAL, linux.SYS_MREMAP, at+1, pageSize, pageSize, 0)
	u.fails(linux.EINVAL, linux.SYS_MREMAP, at, pageSize, 0, 0)
}

// mincore(2) shows which pages are in memory.
func TestMincore(t *testing.T) {
	u := newUser(t)
	at, vector := u.memory(3, protRead|protWrite), u.memory(1, protRead|protWrite)
	u.write(at+pageSize, 1)
	u.want(0, linux.SYS_MINCORE, at, 3*pageSize, vector)
	if v := u.read(vector); v != 1<<8 {
		t.Errorf("pages in memory: %#x", v)
	}
	u.fails(linux.EINVAL, linux.SYS_MINCORE, at+1, pageSize, vector)
	u.fails(linux.EFAULT, linux.SYS_MINCORE, at, pageSize, 0)
	u.want(0, linux.SYS_MUNMAP, at+2*pageSize, pageSize)
	u.fails(linux.ENOMEM, linux.SYS_MINCORE, at, 3*pageSize, vector)
}

// Wrong arguments of calls about memory return the errors of Linux.
func TestMemoryErrors(t *testing.T) {
	u := newUser(t)
	at := u.memory(2, protRead|protWrite)
	const huge, noReplace, shared = 0x40000, 0x100000, 1
	u.fails(linux.EINVAL, linux.SYS_MMAP, 0, 0, protRead, mapPrivate|mapAnon)
	u.fails(linux.EINVAL, linux.SYS_MMAP, 0, pageSize, protRead, mapAnon)
	u.fails(linux.EINVAL, linux.SYS_MMAP, at+1, pageSize, protRead, mapPrivate|mapAnon|mapFixed)
	u.fails(linux.ENODEV, linux.SYS_MMAP, 0, pageSize, protRead, mapPrivate)
	u.fails(linux.ENOMEM, linux.SYS_MMAP, 0, pageSize, protRead, mapPrivate|mapAnon|huge)
	u.fails(linux.ENOMEM, linux.SYS_MMAP, 0, 1<<50, protRead, mapPrivate|mapAnon)
	u.fails(linux.EEXIST, linux.SYS_MMAP, at, pageSize, protRead, mapPrivate|mapAnon|noReplace)
	u.fails(linux.EINVAL, linux.SYS_MUNMAP, at+1, pageSize)
	u.fails(linux.EINVAL, linux.SYS_MUNMAP, at, 0)
	u.fails(linux.EINVAL, linux.SYS_MUNMAP, at, ^uint64(0)-pageSize)
	u.fails(linux.ENOMEM, linux.SYS_MPROTECT, at, 1<<30, protRead)
	u.fails(linux.EINVAL, linux.SYS_MADVISE, at, pageSize, 999)
	u.fails(linux.EINVAL, linux.SYS_MADVISE, at+1, pageSize, 4)
	u.fails(linux.ENOMEM, linux.SYS_MADVISE, at, 1<<30, 4)
	u.fails(linux.ENOMEM, linux.SYS_MLOCK, at, 1<<30)
	u.want(0, linux.SYS_MLOCK, at, pageSize)
	u.fails(linux.EINVAL, linux.SYS_MLOCK2, at, pageSize, 2)
	if result := u.call(linux.SYS_MMAP, 0, pageSize, protRead, shared|mapAnon); result < 0 {
		t.Errorf("a shared mapping returns %d", result)
	}
}

// A call that stores or reads memory at a bad address returns EFAULT, wherever the bad address is.
func TestBadAddresses(t *testing.T) {
	u := newUser(t)
	readable, none := u.memory(1, protRead), u.memory(1, protNone)
	good := u.memory(1, protRead|protWrite)
	edge := u.memory(2, protRead|protWrite)
	u.want(0, linux.SYS_MUNMAP, edge+pageSize, pageSize)
	edge += pageSize - 4
	const bad = 0xbad // stands for each of the bad addresses
	for _, c := range []struct {
		number  uint64
		args    []uint64
		written bool // the call writes at the address
		small   bool // the call accesses only four bytes
	}{
		{linux.SYS_RT_SIGACTION, []uint64{10, bad, 0, 8}, false, false},
		{linux.SYS_RT_SIGACTION, []uint64{10, 0, bad, 8}, true, false},
		{linux.SYS_RT_SIGPROCMASK, []uint64{0, bad, 0, 8}, false, false},
		{linux.SYS_RT_SIGPROCMASK, []uint64{0, 0, bad, 8}, true, false},
		{linux.SYS_RT_SIGPENDING, []uint64{bad, 8}, true, false},
		{linux.SYS_RT_SIGTIMEDWAIT, []uint64{bad, 0, 0, 8}, false, false},
		{linux.SYS_RT_SIGTIMEDWAIT, []uint64{good, bad, 0, 8}, true, false},
		{linux.SYS_RT_SIGTIMEDWAIT, []uint64{good, 0, bad, 8}, false, false},
		{linux.SYS_SIGALTSTACK, []uint64{bad, 0}, false, false},
		{linux.SYS_SIGALTSTACK, []uint64{0, bad}, true, false},
		{linux.SYS_NANOSLEEP, []uint64{bad}, false, false},
		{linux.SYS_CLOCK_NANOSLEEP, []uint64{1, 0, bad}, false, false},
		{linux.SYS_CLOCK_GETTIME, []uint64{1, bad}, true, false},
		{linux.SYS_CLOCK_GETRES, []uint64{1, bad}, true, false},
		{linux.SYS_GETTIMEOFDAY, []uint64{bad, 0}, true, false},
		{linux.SYS_GETTIMEOFDAY, []uint64{0, bad}, true, false},
		{linux.SYS_TIME, []uint64{bad}, true, false},
		{linux.SYS_TIMES, []uint64{bad}, true, false},
		{linux.SYS_FUTEX, []uint64{bad, futexWait, 0, 0}, false, true},
		{linux.SYS_FUTEX, []uint64{good, futexWait, 0, bad}, false, false},
		{linux.SYS_FUTEX, []uint64{bad, futexCmpRequeue, 1, 1, good}, false, true},
		{linux.SYS_SCHED_GETAFFINITY, []uint64{0, 8, bad}, true, false},
		{linux.SYS_SCHED_SETAFFINITY, []uint64{0, 8, bad}, false, false},
		{linux.SYS_GETCPU, []uint64{bad, 0}, true, true},
		{linux.SYS_GETCPU, []uint64{0, bad}, true, true},
		{linux.SYS_ARCH_PRCTL, []uint64{0x1003, bad}, true, false},
		{linux.SYS_PRCTL, []uint64{15, bad}, false, false},
		{linux.SYS_PRCTL, []uint64{16, bad}, true, false},
		{linux.SYS_GETRESUID, []uint64{good, good, bad}, true, true},
		{linux.SYS_GETRESGID, []uint64{bad, good, good}, true, true},
		{linux.SYS_UNAME, []uint64{bad}, true, false},
		{linux.SYS_SYSINFO, []uint64{bad}, true, false},
		{linux.SYS_GETRUSAGE, []uint64{0, bad}, true, false},
		{linux.SYS_GETRLIMIT, []uint64{7, bad}, true, false},
		{linux.SYS_SETRLIMIT, []uint64{7, bad}, false, false},
		{linux.SYS_PRLIMIT64, []uint64{0, 7, 0, bad}, true, false},
		{linux.SYS_PIPE2, []uint64{bad, 0}, true, false},
		{linux.SYS_WRITE, []uint64{1, bad, 16}, false, false},
		{linux.SYS_TIMER_CREATE, []uint64{3, bad, good}, false, false},
		{linux.SYS_TIMER_CREATE, []uint64{3, good, bad}, true, true},
		{linux.SYS_SETITIMER, []uint64{2, bad, 0}, false, false},
		{linux.SYS_SETITIMER, []uint64{2, 0, bad}, true, false},
		{linux.SYS_GETRANDOM, []uint64{bad, 16}, true, false},
		{CallTake, []uint64{bad, 2}, true, false},
		{CallGive, []uint64{bad, 2}, false, false},
	} {
		addresses := []uint64{8, none, good + 1<<40, 1<<63 - 8, ^uint64(0) - 7}
		if c.written {
			addresses = append(addresses, readable)
		}
		if !c.small {
			addresses = append(addresses, edge)
		}
		for _, address := range addresses {
			args := slices.Clone(c.args)
			args[slices.Index(args, bad)] = address
			u.fails(linux.EFAULT, c.number, args...)
		}
	}
}

// A thread that waits for a futex is woken by a call of another thread, by a signal, or when its time is over.
func TestFutex(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(10)
	at := u.memory(1, protRead|protWrite)
	u.write(at, 5)
	u.fails(linux.EAGAIN, linux.SYS_FUTEX, at, futexWait, 6, 0)
	u.fails(linux.EINVAL, linux.SYS_FUTEX, at+1, futexWait, 5, 0)
	u.fails(linux.ENOSYS, linux.SYS_FUTEX, at, 6, 5, 0)
	u.want(0, linux.SYS_FUTEX, at, futexWake, 1)
	first := u.cpu.current
	second := u.clone()

	u.call(linux.SYS_FUTEX, at, futexWait, 5, 0)
	u.current(second)
	u.want(1, linux.SYS_FUTEX, at, futexWake, 9)
	u.call(linux.SYS_SCHED_YIELD)
	u.resumed(first, 0)

	u.call(linux.SYS_FUTEX, at, futexWait, 5, 0)
	u.resumed(second, 0) // of sched_yield
	u.want(0, linux.SYS_TKILL, uint64(first), 10)
	u.call(linux.SYS_SCHED_YIELD)
	u.current(first)
	if f := u.handled(10); int64(f.Context.Registers.AX) != -int64(linux.EINTR) {
		t.Errorf("an interrupted wait returns %d", int64(f.Context.Registers.AX))
	}

	u.write(at+8, 0) // a struct timespec with 1000 ns
	u.write(at+16, 1000)
	u.call(linux.SYS_FUTEX, at, futexWait, 5, at+8)
	u.resumed(second, 0)
	u.machine.ticks += 1e6
	u.call(linux.SYS_SCHED_YIELD)
	u.resumed(first, -int64(linux.ETIMEDOUT))
}

// clone makes a thread with the stack and the registers of the current one, and returns its ID.
func (u user) clone() thread.ID {
	u.t.Helper()
	id := u.call(linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD, u.memory(4, protRead|protWrite)+4*pageSize)
	if id <= 0 {
		u.t.Fatalf("clone returns %d", id)
	}
	return thread.ID(id)
}

// current checks which thread runs.
func (u user) current(id thread.ID) {
	u.t.Helper()
	if u.cpu.current != id {
		u.t.Fatalf("thread %d runs, want %d", u.cpu.current, id)
	}
}

// resumed checks that a thread runs, and the result of the call in which it waited.
func (u user) resumed(id thread.ID, result int64) {
	u.t.Helper()
	u.current(id)
	if got := int64(frameOf(u.page()).AX); got != result {
		u.t.Errorf("the call returns %d, want %d", got, result)
	}
}

// A sleeping thread continues at its time, which its CPU's timer announces.
func TestSleep(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	id := u.cpu.current
	for _, c := range []struct{ seconds, nanos uint64 }{{0, 7000}, {0, 999_999_999}, {3, 5}} {
		u.write(at, c.seconds)
		u.write(at+8, c.nanos)
		begin := u.machine.core.clock.now()
		u.call(linux.SYS_NANOSLEEP, at)
		u.current(thread.None)
		for u.cpu.current == thread.None {
			u.machine.ticks = max(u.machine.ticks, u.timer)
			u.step()
		}
		u.resumed(id, 0)
		const late = 1e6
		if slept := u.machine.core.clock.now() - begin; slept < int64(c.seconds*1e9+c.nanos) || slept > int64(c.seconds*1e9+c.nanos)+late {
			t.Errorf("%d ns after a sleep of %d.%09d s", slept, c.seconds, c.nanos)
		}
	}
	u.write(at, 1)
	u.write(at+8, 1e9)
	u.fails(linux.EINVAL, linux.SYS_NANOSLEEP, at)
	u.fails(linux.EINVAL, linux.SYS_CLOCK_NANOSLEEP, 99, 0, at)
	u.fails(linux.EOPNOTSUPP, linux.SYS_CLOCK_NANOSLEEP, threadTime, 0, at)
	u.write(at, 0)
	u.write(at+8, 0)
	const absolute = 1
	u.want(0, linux.SYS_CLOCK_NANOSLEEP, monotonic, absolute, at)
}
