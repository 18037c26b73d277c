package kernel

import (
	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/signal"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Calls in which a thread waits. The kernel itself does not block: the thread is stored in the table of threads
// with a key. Its call returns when the thread is woken, when a signal interrupts it, or when its timeout expires.

// Keys with which threads wait. The key of a futex is its address, which is lower than these values.
const (
	keySleep   = 1<<64 - 1 // nanosleep(2) and similar calls: no thread is woken by this key
	keyPoll    = 1<<64 - 2
	keySignal  = 1<<64 - 3 // rt_sigtimedwait(2): no thread is woken by this key
	keyStandIn = 1<<64 - 4 // CallStandIn
)

// wait blocks the running thread, unless a signal is pending; then it returns EINTR. Another CPU may have sent the
// signal (signalThread) while this thread was entering the kernel. leave has not seen such a signal yet, and it does not
// interrupt a wait that begins later.
func (k *core) wait(c *cpu, key uint64, deadline, late int64) (int64, bool) {
	if th := k.threads.At(c.current); th.Pending&^th.Mask != 0 {
		return -int64(linux.EINTR), true
	}
	k.threads.Wait(c.current, key, deadline, late)
	c.current = thread.None
	return 0, false
}

// after returns the time at which a timeout, a struct timespec at addr, expires; thread.Never if addr is 0 or the
// time is very long.
func (k *core) after(addr uint64) (deadline int64, errno linux.Errno) {
	if addr == 0 {
		return thread.Never, 0
	}
	if !k.touch(addr, 16, space.Read) {
		return 0, linux.EFAULT
	}
	t, ok := nanoseconds(addr, 1)
	switch {
	case !ok:
		return 0, linux.EINVAL
	case t >= longestWait*1e9:
		return thread.Never, 0
	}
	return k.clock.now() + t, 0
}

// Operations of futex(2).
const (
	futexWait       = 0
	futexWake       = 1
	futexRequeue    = 3
	futexCmpRequeue = 4
	futexWaitBitset = 9
	futexWakeBitset = 10

	futexOperation = 0x7f
	futexRealtime  = 0x100
	everyBit       = 1<<32 - 1
)

// futex implements futex(2). It does not support the operations on locks, FUTEX_WAKE_OP, and bit sets other than all bits.
// FUTEX_REQUEUE wakes the threads that it should move to another futex. That is correct, because a waiting thread may be
// woken at any time.
func (k *core) futex(c *cpu, f *amd64.Frame) (int64, bool) {
	addr, operation := f.DI, f.SI&futexOperation
	if operation <= futexWakeBitset && addr%4 != 0 {
		return -int64(linux.EINVAL), true
	}
	switch operation {
	case futexWakeBitset:
		if f.R9 != everyBit {
			return -int64(linux.ENOSYS), true
		}
		fallthrough
	case futexWake:
		return int64(k.threads.Wake(addr, int(int32(f.DX)), 0)), true
	case futexRequeue, futexCmpRequeue:
		wake, move := int(int32(f.DX)), int(int32(f.R10))
		if wake < 0 || move < 0 {
			return -int64(linux.EINVAL), true
		}
		if !k.touch(addr, 4, space.Read) {
			return -int64(linux.EFAULT), true
		}
		if operation == futexCmpRequeue && *word32(addr) != uint32(f.R9) {
			return -int64(linux.EAGAIN), true
		}
		return int64(k.threads.Wake(addr, wake+move, 0)), true
	case futexWait, futexWaitBitset:
		return k.futexSleep(c, f, operation == futexWaitBitset)
	}
	return -int64(linux.ENOSYS), true
}

// futexSleep implements futex(2) with FUTEX_WAIT, or with FUTEX_WAIT_BITSET, whose timeout is absolute.
func (k *core) futexSleep(c *cpu, f *amd64.Frame, absolute bool) (int64, bool) {
	addr := f.DI
	if !k.touch(addr, 4, space.Read) {
		return -int64(linux.EFAULT), true
	}
	deadline, errno := k.after(f.R10)
	switch {
	case errno != 0:
		return -int64(errno), true
	case absolute && f.R9 != everyBit:
		return -int64(linux.ENOSYS), true
	case absolute && deadline != thread.Never:
		deadline = int64(*word(f.R10)*1e9 + *word(f.R10 + 8))
		if f.SI&futexRealtime != 0 {
			deadline -= k.clock.Wall
		}
	}
	if *word32(addr) != uint32(f.DX) {
		return -int64(linux.EAGAIN), true
	}
	return k.wait(c, addr, deadline, -int64(linux.ETIMEDOUT))
}

// sleep implements nanosleep(2).
func (k *core) sleep(c *cpu, addr uint64) (int64, bool) {
	deadline, errno := k.after(addr)
	switch {
	case addr == 0:
		return -int64(linux.EFAULT), true
	case errno != 0:
		return -int64(errno), true
	}
	// shorter sleeps, in nanoseconds, are waited for in a loop: the runtime's sleeps of 3 µs are over before a CPU could go
	// idle
	const short = 5e3
	if deadline-k.clock.now() < short {
		k.spin(c, deadline)
		return 0, true
	}
	return k.wait(c, keySleep, deadline, 0)
}

// sleepBy implements clock_nanosleep(2). A wait by the wall clock is not changed if that clock is set. The remaining time is
// not stored after EINTR.
func (k *core) sleepBy(c *cpu, id int, flags, addr uint64) (int64, bool) {
	const absolute, size = 1, 16
	switch id {
	case realtime, monotonic, boottime, tai:
	case processTime, threadTime, rawMonotonic, realtimeCoarse, monotonicCoarse:
		return -int64(linux.EOPNOTSUPP), true
	default:
		return -int64(linux.EINVAL), true
	}
	if flags&absolute == 0 {
		return k.sleep(c, addr)
	}
	now := k.clock.now()
	deadline, errno := k.after(addr)
	switch {
	case addr == 0:
		return -int64(linux.EFAULT), true
	case errno != 0:
		return -int64(errno), true
	case deadline == thread.Never:
	case id == realtime || id == tai:
		deadline = int64(*word(addr)*1e9+*word(addr + 8)) - k.clock.Wall
	default:
		deadline = int64(*word(addr)*1e9 + *word(addr + 8))
	}
	if deadline <= now {
		return 0, true
	}
	return k.wait(c, keySleep, deadline, 0)
}

// untilSignal implements pause(2): it waits until a signal is delivered.
func (k *core) untilSignal(c *cpu) (int64, bool) { return k.wait(c, keySleep, thread.Never, 0) }

// seek implements rt_sigtimedwait(2). The call returns a signal that is pending for the thread, or one that is sent
// to the thread or to the program during the wait.
func (k *core) seek(c *cpu, set, info, timeout, size uint64) (int64, bool) {
	const word64, infoSize = 8, 128
	switch {
	case size != word64:
		return -int64(linux.EINVAL), true
	case !k.touch(set, word64, space.Read) || info != 0 && !k.touch(info, infoSize, space.Write):
		return -int64(linux.EFAULT), true
	}
	deadline, errno := k.after(timeout)
	if errno != 0 {
		return -int64(errno), true
	}
	th := k.threads.At(c.current)
	th.Sought, th.Info = *word(set), info
	if n := signal.Set(th.Pending & th.Sought).First(); n != 0 {
		return k.take(th, n), true
	}
	if deadline <= k.clock.now() {
		return -int64(linux.EAGAIN), true
	}
	return k.wait(c, keySignal, deadline, -int64(linux.EAGAIN))
}

// take removes a signal that is pending for a thread in rt_sigtimedwait(2), and returns the result of that call.
func (k *core) take(th *thread.Thread, n signal.Number) int64 {
	th.Pending &^= uint64(signal.Of(n))
	if th.Info != 0 {
		const infoSize = 128
		if k.touch(th.Info, infoSize, space.Write) {
			clear(bytesAt(th.Info, infoSize))
			*word32(th.Info) = uint32(n)
		}
	}
	return int64(n)
}

// spin waits in a loop until a deadline. Meanwhile it does not hold the kernel's lock, so other CPUs can
// enter the kernel.
func (k *core) spin(c *cpu, deadline int64) {
	held := k.clock // a copy, because another CPU may correct the clock meanwhile
	k.unlock(c)
	for held.now() < deadline {
		k.flushIfAsked(c)
		amd64.Pause()
	}
	k.lock(c)
}
