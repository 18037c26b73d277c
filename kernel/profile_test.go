package kernel

import (
	"testing"

	"loam/abi/linux"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// Timers on CPU time, by which the runtime makes profiles.

// makeTimer creates a timer of the current thread with a signal, and returns its number.
func (u user) makeTimer(n signal.Number) uint64 {
	u.t.Helper()
	const toThread = 4
	at := u.memory(1, protRead|protWrite)
	u.write(at+8, uint64(n)|toThread<<32)
	u.write(at+16, uint64(u.cpu.current))
	u.want(0, linux.SYS_TIMER_CREATE, threadTime, at, at+64)
	return u.read(at + 64)
}

// setting stores a struct itimerspec, or a struct itimerval.
func (u user) setting(interval, first [2]int64) uint64 {
	u.t.Helper()
	at := u.memory(1, protRead|protWrite)
	u.timespec(at, interval[0], interval[1])
	return u.timespec(at+16, first[0], first[1]) - 16
}

// timer_create(2) makes only the timers that the runtime uses: on the CPU time of the calling thread, with a signal to it.
func TestTimerCreation(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	const toThread, toProcess = 4, 0
	id := uint64(u.cpu.current)
	for _, c := range []struct {
		clock, number, notify, thread uint64
		want                          int64
	}{
		{threadTime, uint64(signal.Profile), toThread, id, 0},
		{threadTime, uint64(signal.Profile), toThread, id, -int64(linux.EAGAIN)},
		{threadTime, uint64(signal.Urgent), toThread, id, 0},
		{monotonic, uint64(signal.Profile), toThread, id, -int64(linux.EINVAL)},
		{processTime, uint64(signal.Profile), toThread, id, -int64(linux.EINVAL)},
		{threadTime, uint64(signal.Profile), toProcess, id, -int64(linux.EINVAL)},
		{threadTime, uint64(signal.Profile), toThread, id + 1, -int64(linux.EINVAL)},
		{threadTime, 10, toThread, id, -int64(linux.EINVAL)},
		{threadTime, 0, toThread, id, -int64(linux.EINVAL)},
	} {
		u.write(at+8, c.number|c.notify<<32)
		u.write(at+16, c.thread)
		u.want(c.want, linux.SYS_TIMER_CREATE, c.clock, at, at+64)
	}
}

// A setting that is not a time is refused, and leaves the timer as it was.
func TestTimerSettings(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(signal.Profile)
	id := u.makeTimer(signal.Profile)
	const ms = 1_000_000
	u.want(0, linux.SYS_TIMER_SETTIME, id, 0, u.setting([2]int64{}, [2]int64{0, 5 * ms}), 0)
	for _, bad := range [][2]int64{{0, -1}, {0, 1e9}, {-1, 0}, {-1 << 63, 5}} {
		u.fails(linux.EINVAL, linux.SYS_TIMER_SETTIME, id, 0, u.setting(bad, [2]int64{0, 1}), 0)
		u.fails(linux.EINVAL, linux.SYS_TIMER_SETTIME, id, 0, u.setting([2]int64{}, bad), 0)
	}
	const profile, second = 2, 1_000_000 // setitimer(2) counts microseconds
	for _, bad := range [][2]int64{{0, -1}, {0, second}, {-1, 0}} {
		u.fails(linux.EINVAL, linux.SYS_SETITIMER, profile, u.setting(bad, [2]int64{}), 0)
	}
	at := u.setting([2]int64{}, [2]int64{0, 5 * ms})
	u.fails(linux.EINVAL, linux.SYS_TIMER_SETTIME, id, 1, at, 0) // absolute
	u.fails(linux.EINVAL, linux.SYS_TIMER_SETTIME, id, 0, at, at+64)
	u.fails(linux.EFAULT, linux.SYS_TIMER_SETTIME, id, 0, 8, 0)
	for _, other := range []uint64{0, id + 1, id + alarms, 2 * alarms, 1 << 40} {
		u.fails(linux.EINVAL, linux.SYS_TIMER_SETTIME, other, 0, at, 0)
		u.fails(linux.EINVAL, linux.SYS_TIMER_DELETE, other)
	}
	u.pass(5 * ms)
	u.call(linux.SYS_GETPID)
	if f := u.returnsFrom(signal.Profile); f.Info.Code != signal.CodeTimer {
		t.Errorf("the timer of the thread sends the code %d", f.Info.Code)
	}
	u.pass(50 * ms)
	u.want(programID, linux.SYS_GETPID) // it expires once
}

// A timer counts the CPU time of its thread: it stands still while the thread waits and while another thread runs. The CPU's
// timer expires with it, although the thread makes no call.
func TestTimerStandsStill(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(signal.Profile)
	first, at := u.cpu.current, u.memory(1, protRead|protWrite)
	const ms = 1_000_000
	u.want(0, linux.SYS_TIMER_SETTIME, u.makeTimer(signal.Profile), 0, u.setting([2]int64{}, [2]int64{0, 4 * ms}), 0)
	if left := int64(u.timer) - int64(u.machine.ticks); left < 3*ms || left > 4*ms+1000 {
		t.Errorf("the CPU's timer expires in %d ns", left)
	}
	second := u.clone()
	u.pass(3 * ms)
	u.call(linux.SYS_FUTEX, at, futexWait, 0, 0)
	u.current(second)
	u.pass(9 * ms)
	u.want(1, linux.SYS_FUTEX, at, futexWake, 1)
	u.yields(1)
	u.resumed(first, 0)
	u.pass(ms / 2)
	u.want(programID, linux.SYS_GETPID)
	u.pass(ms)
	u.interrupt(112)
	u.handled(signal.Profile)
}

// The timer of the process runs on each thread that has none of its own, and sends other codes. A thread with its own timer is
// not sampled twice.
func TestProcessTimer(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(signal.Profile)
	const profile, ms, micros = 2, 1_000_000, 1000
	u.want(0, linux.SYS_SETITIMER, profile, u.setting([2]int64{0, 2 * micros}, [2]int64{}), 0)
	old := u.setting([2]int64{9, 9}, [2]int64{9, 9})
	u.want(0, linux.SYS_SETITIMER, profile, u.setting([2]int64{0, 2 * micros}, [2]int64{}), old)
	if got := u.read(old + 8); got != 2*micros {
		t.Errorf("the former interval is %d µs", got)
	}
	for range 3 {
		u.pass(2 * ms)
		u.call(linux.SYS_GETTID)
		if f := u.returnsFrom(signal.Profile); f.Info.Code != signal.CodeKernel {
			t.Errorf("the timer of the process sends the code %d", f.Info.Code)
		}
	}
	u.pass(7 * ms) // missed intervals are skipped
	u.call(linux.SYS_GETTID)
	u.returnsFrom(signal.Profile)
	u.want(int64(u.cpu.current), linux.SYS_GETTID)

	id := u.makeTimer(signal.Profile)
	u.pass(20 * ms)
	u.want(programID, linux.SYS_GETPID) // its own timer is not set
	u.want(0, linux.SYS_TIMER_DELETE, id)
	u.want(0, linux.SYS_SETITIMER, profile, u.setting([2]int64{}, [2]int64{}), 0)
	u.pass(20 * ms)
	u.want(programID, linux.SYS_GETPID)
	u.fails(linux.EINVAL, linux.SYS_SETITIMER, 0, 0, 0)
	u.fails(linux.EINVAL, linux.SYS_SETITIMER, 1, 0, 0)
}

// The timers of a thread end with it: the thread that gets its number has none.
func TestTimerOfEndedThread(t *testing.T) {
	u := newUser(t)
	first, second := u.cpu.current, u.clone()
	u.yields(1)
	u.current(second)
	id := u.makeTimer(signal.Profile)
	u.call(linux.SYS_EXIT)
	u.current(first)
	u.fails(linux.EINVAL, linux.SYS_TIMER_DELETE, id)
	if again := u.clone(); again != second || u.thread(again).Profile != (thread.Profile{}) {
		t.Errorf("thread %d has the timer %+v", again, u.thread(again).Profile)
	}
}
