package kernel

import (
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// Waiting: futexes, sleeps, and the runtime's poller.

// The threads that wait for a futex are woken in the order in which they began, and no more than the caller asks for.
func TestFutexOrder(t *testing.T) {
	for _, c := range []struct {
		count uint64
		want  int64
	}{{1, 1}, {2, 2}, {3, 3}, {4, 3}, {1<<31 - 1, 3}} {
		u := newUser(t)
		at := u.memory(1, protRead|protWrite)
		ids := u.waiters(3, at)
		waker := u.cpu.current
		u.want(c.want, linux.SYS_FUTEX, at, futexWake, c.count)
		if got, want := u.yields(int(c.want)), ids[:c.want]; !slices.Equal(got, want) {
			t.Errorf("%d are woken: the threads %v run, want %v", c.count, got, want)
		}
		u.yields(1)
		u.current(waker)
	}
}

// A thread is woken only by its own futex. A futex is a word, so its neighbour is another futex.
func TestFutexAddress(t *testing.T) {
	u := newUser(t)
	at := u.memory(2, protRead|protWrite)
	u.waiters(1, at+pageSize)
	for _, other := range []uint64{at, at + pageSize - 4, at + pageSize + 4, at + pageSize + 1024, at + 8} {
		u.want(0, linux.SYS_FUTEX, other, futexWake, 9)
	}
	u.want(1, linux.SYS_FUTEX, at+pageSize, futexWake, 9)
}

// FUTEX_REQUEUE and FUTEX_CMP_REQUEUE wake the threads that they should wake and those that they should move: a waiting
// thread may be woken at any time. pthread_cond_broadcast(3) of C libraries moves as many as an int can count.
func TestFutexRequeue(t *testing.T) {
	const most = 1<<31 - 1
	for _, c := range []struct {
		operation, wake, move, value uint64
		want                         int64
	}{
		{futexRequeue, 1, most, 0, 3},
		{futexRequeue, 1, 1, 77, 2}, // the value is not compared
		{futexRequeue, 0, 1, 0, 1},
		{futexCmpRequeue, 1, most, 0, 3},
		{futexCmpRequeue, most, most, 0, 3},
		{futexCmpRequeue, 1, most, 1, -int64(linux.EAGAIN)},
		{futexRequeue, 1 << 31, 0, 0, -int64(linux.EINVAL)}, // negative
		{futexCmpRequeue, 0, 1 << 31, 0, -int64(linux.EINVAL)},
		{futexCmpRequeue, 1 << 31, 0, 1, -int64(linux.EINVAL)},
	} {
		u := newUser(t)
		at := u.memory(1, protRead|protWrite)
		u.waiters(3, at)
		u.want(c.want, linux.SYS_FUTEX, at, c.operation, c.wake, c.move, at+4, c.value)
	}
}

// The timeout of FUTEX_WAIT is relative, and that of FUTEX_WAIT_BITSET is a time of the monotonic or the real-time clock. A
// wait whose time has passed returns at once.
func TestFutexTimeouts(t *testing.T) {
	const wall, ms = 1_700_000_000e9, 1e6
	for _, c := range []struct {
		what      string
		operation uint64
		bits      uint64
		base      int64 // time at which the timeout begins
		timeout   int64
		want      int64 // time that passes, in nanoseconds; negative: an error
	}{
		{"relative", futexWait, 0, 0, 3 * ms, 3 * ms},
		{"relative and zero", futexWait, 0, 0, 0, 0},
		{"absolute", futexWaitBitset, everyBit, -1, 3 * ms, 3 * ms},
		{"absolute and past", futexWaitBitset, everyBit, -1, -ms, 0},
		{"absolute and zero", futexWaitBitset, everyBit, 0, 0, 0},
		{"absolute and one", futexWaitBitset, everyBit, 0, 1, 0},
		{"by the wall clock", futexWaitBitset | futexRealtime, everyBit, wall, 3 * ms, 3 * ms},
		{"by the wall clock and past", futexWaitBitset | futexRealtime, everyBit, wall, -5 * ms, 0},
		{"by the wall clock and before the start", futexWaitBitset | futexRealtime, everyBit, 0, 0, 0},
		{"some bits", futexWaitBitset, 1, -1, ms, -int64(linux.ENOSYS)},
	} {
		u := newUser(t)
		u.kernel().clock.SetWall(wall)
		u.pass(1e9)
		at := u.memory(1, protRead|protWrite)
		id, begin := u.cpu.current, u.now()
		when := c.base + c.timeout
		if c.base != 0 {
			when += begin // of the clock that runs since the start, or since the wall time at the start
		}
		if c.base == -1 {
			when++
		}
		u.timespec(at+8, when/1e9, when%1e9)
		u.call(linux.SYS_FUTEX, at, c.operation, 0, at+8, 0, c.bits)
		if c.want < 0 {
			u.resumed(id, c.want)
			continue
		}
		if waits := u.cpu.current == thread.None; waits != (c.want > 0) {
			t.Errorf("%s: waits %v", c.what, waits)
		}
		if c.want > 0 {
			u.idles()
		}
		u.resumed(id, -int64(linux.ETIMEDOUT))
		const late = ms
		if passed := u.now() - begin; passed < c.want || passed > c.want+late {
			t.Errorf("%s: %d ns pass, want %d", c.what, passed, c.want)
		}
	}
}

// A timeout that is not a time is refused, and one that is too long to compute means no timeout.
func TestTimeoutValues(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	for _, c := range []struct{ seconds, nanos int64 }{{-1, 0}, {-1 << 63, 0}, {0, -1}, {0, 1e9}, {5, 1 << 62}} {
		u.timespec(at+8, c.seconds, c.nanos)
		u.fails(linux.EINVAL, linux.SYS_FUTEX, at, futexWait, 0, at+8)
		u.fails(linux.EINVAL, linux.SYS_FUTEX, at, futexWaitBitset, 0, at+8, 0, everyBit)
		u.fails(linux.EINVAL, linux.SYS_NANOSLEEP, at+8)
		u.fails(linux.EINVAL, linux.SYS_CLOCK_NANOSLEEP, monotonic, 0, at+8)
		u.fails(linux.EINVAL, linux.SYS_CLOCK_NANOSLEEP, realtime, 1, at+8)
		u.fails(linux.EINVAL, linux.SYS_RT_SIGTIMEDWAIT, at+64, 0, at+8, 8)
	}
	u.timespec(at+8, 1<<62, 999_999_999)
	for range 3 {
		u.waitsForever(linux.SYS_FUTEX, at, futexWait, 0, at+8)
		u.waitsForever(linux.SYS_FUTEX, at, futexWaitBitset, 0, at+8, 0, everyBit)
		u.waitsForever(linux.SYS_NANOSLEEP, at+8)
		u.waitsForever(linux.SYS_CLOCK_NANOSLEEP, monotonic, 1, at+8)
		u.waitsForever(linux.SYS_CLOCK_NANOSLEEP, realtime, 1, at+8)
		u.waitsForever(linux.SYS_RT_SIGTIMEDWAIT, at+64, 0, at+8, 8)
	}
}

// waitsForever checks that a call waits and that no time ends the wait. Another thread then ends it.
func (u user) waitsForever(number uint64, args ...uint64) {
	u.t.Helper()
	id := u.cpu.current
	other := u.clone()
	u.call(number, args...)
	u.current(other)
	if at := u.kernel().threads.Earliest(); at != thread.Never {
		u.t.Errorf("call %d waits until %d", number, at)
	}
	u.kernel().threads.Interrupt(id, 0)
	u.call(linux.SYS_EXIT)
	u.current(id)
}

// clock_nanosleep(2) sleeps by the clocks that count real time, for a time or until a time.
func TestClockNanosleep(t *testing.T) {
	const wall, ms, absolute = 1_700_000_000e9, int64(1e6), 1
	for _, id := range []int64{realtime, monotonic, boottime, tai} {
		for _, c := range []struct {
			what  string
			flags uint64
			sleep int64
		}{
			{"relative", 0, 3 * ms}, {"absolute", absolute, 3 * ms}, {"absolute and past", absolute, -ms}, {"relative and short", 0, 3000},
			{"zero", 0, 0},
		} {
			u := newUser(t)
			u.kernel().clock.SetWall(wall)
			u.pass(1e9)
			at, begin, th := u.memory(1, protRead|protWrite), u.now(), u.cpu.current
			when := c.sleep
			if c.flags == absolute {
				when += begin
				if id == realtime || id == tai {
					when += wall
				}
			}
			u.timespec(at, when/1e9, when%1e9)
			u.call(linux.SYS_CLOCK_NANOSLEEP, uint64(id), c.flags, at)
			u.idles()
			u.resumed(th, 0)
			if slept := u.now() - begin; slept < c.sleep || slept > max(c.sleep, 0)+ms/10 {
				t.Errorf("clock %d, %s: slept %d ns, want %d", id, c.what, slept, c.sleep)
			}
		}
	}
	u := newUser(t)
	at := u.timespec(u.memory(1, protRead|protWrite), 0, 0)
	for _, id := range []int64{threadTime, rawMonotonic, realtimeCoarse, monotonicCoarse} {
		u.fails(linux.EOPNOTSUPP, linux.SYS_CLOCK_NANOSLEEP, uint64(id), 0, at)
	}
	for _, id := range []int64{-1, 10, 12, 99} {
		u.fails(linux.EINVAL, linux.SYS_CLOCK_NANOSLEEP, uint64(id), 0, at)
	}
	u.fails(linux.EFAULT, linux.SYS_CLOCK_NANOSLEEP, monotonic, absolute, 0)
	u.fails(linux.EFAULT, linux.SYS_NANOSLEEP, 0)
}

// Sleeping threads wake in the order of their deadlines, whichever slept first.
func TestSleepOrder(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	const ms = 1_000_000
	first, second, third := u.cpu.current, u.clone(), u.clone()
	for i, nanos := range []int64{9 * ms, 2 * ms, 5 * ms} {
		u.timespec(at+uint64(i)*16, 0, nanos)
		u.call(linux.SYS_NANOSLEEP, at+uint64(i)*16)
	}
	for _, want := range []thread.ID{second, third, first} {
		u.current(thread.None)
		u.idles()
		u.resumed(want, 0)
		if want != first {
			u.call(linux.SYS_EXIT)
		}
	}
}

// A signal handler ends pause(2), and so does no other event.
func TestPause(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(10)
	id := u.cpu.current
	other := u.clone()
	u.call(linux.SYS_PAUSE)
	u.current(other)
	u.want(0, linux.SYS_TKILL, uint64(id), uint64(signal.Child)) // ignored by default
	u.yields(1)
	u.current(other)
	u.call(linux.SYS_TKILL, uint64(id), 10)
	u.current(id) // the other thread has yielded
	if f := u.handled(10); int64(f.Context.Registers.AX) != -int64(linux.EINTR) {
		t.Errorf("pause returns %d", int64(f.Context.Registers.AX))
	}
}

// The poller returns after its timeout, and a write to its descriptor wakes it once, even if the write came first.
func TestPollTimes(t *testing.T) {
	u := newUser(t)
	at, id := u.memory(1, protRead|protWrite), u.cpu.current
	const ms = int64(1e6)
	for _, timeout := range []int64{0, 20_000, 3 * ms} {
		begin := u.now()
		u.call(CallPoll, uint64(timeout))
		u.idles()
		u.resumed(id, 0)
		if passed := u.now() - begin; passed < timeout || passed > timeout+ms/10 {
			t.Errorf("%d ns pass, want %d", passed, timeout)
		}
	}
	for _, timeout := range []int64{-1, -1 << 63, 1 << 62} {
		u.waitsForever(CallPoll, uint64(timeout))
	}
	for range 3 { // several writes are one
		u.want(8, linux.SYS_WRITE, wakeFD, at, 8)
	}
	u.want(1, CallPoll, 0)
	u.want(0, CallPoll, 0)

	other := u.clone()
	u.call(CallPoll, ^uint64(0))
	u.current(other)
	u.want(8, linux.SYS_WRITE, wakeFD, at, 8)
	u.yields(1)
	u.resumed(id, 1)
	u.call(CallPoll, 0)
	u.resumed(other, 0)
	u.yields(1)
	u.resumed(id, 0) // the write was used up
}

// The poller's descriptors exist from the start. Only the runtime's own descriptor can be added.
func TestPollDescriptors(t *testing.T) {
	u := newUser(t)
	u.want(pollFD, linux.SYS_EPOLL_CREATE1, linux.EPOLL_CLOEXEC)
	u.want(wakeFD, linux.SYS_EVENTFD2, 0, 0)
	const add, remove = 1, 2
	u.want(0, linux.SYS_EPOLL_CTL, pollFD, add, wakeFD, 0)
	u.fails(linux.EPERM, linux.SYS_EPOLL_CTL, pollFD, add, 1, 0)
	u.fails(linux.EPERM, linux.SYS_EPOLL_CTL, pollFD, remove, wakeFD, 0)
	u.fails(linux.EPERM, linux.SYS_EPOLL_CTL, wakeFD, add, wakeFD, 0)
	u.want(0, linux.SYS_CLOSE, pollFD)
	u.want(0, linux.SYS_CLOSE, wakeFD)
}
