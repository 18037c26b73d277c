package kernel

import (
	"sync/atomic"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Calls in which a thread waits. The kernel itself does not block: the thread is stored in the table of threads
// with a key. Its call returns when the thread is woken, when a signal interrupts it, or when its timeout expires.

// Keys. The key of a futex is its address, which is below these.
const (
	keySleep = 1<<64 - 1 // never woken by key
	keyPoll  = 1<<64 - 2
)

// wait blocks the running thread, unless a signal is pending; then it returns EINTR. Another CPU may have sent the
// signal (tell) while this thread was entering the kernel. leave has not seen such a signal yet, and it does not
// interrupt a wait that begins later.
func (c *cpu) wait(key uint64, deadline, late int64) (int64, bool) {
	if th := threads.At(c.current); th.Pending&^th.Mask != 0 {
		return -int64(linux.EINTR), true
	}
	threads.Wait(c.current, key, deadline, late)
	c.current = thread.None
	return 0, false
}

// after returns the time at which a timeout, a struct timespec at addr, expires; thread.Never if addr is 0 or the
// time is very long.
func after(addr uint64) (deadline int64, errno linux.Errno) {
	if addr == 0 {
		return thread.Never, 0
	}
	if !touch(addr, 16, space.Read) {
		return 0, linux.EFAULT
	}
	seconds, nanos := int64(*word(addr)), int64(*word(addr + 8))
	if seconds < 0 || nanos < 0 || nanos >= 1e9 {
		return 0, linux.EINVAL
	}
	const longest = 1 << 32 // a century, in seconds
	if seconds > longest {
		return thread.Never, 0
	}
	return clock.now() + seconds*1e9 + nanos, 0
}

// futex is futex(2) with FUTEX_WAIT and FUTEX_WAKE, which the runtime uses.
func futex(c *cpu, f *amd64.Frame) (int64, bool) {
	const wait, wake, operation = 0, 1, 0x7f
	addr := f.DI
	switch f.SI & operation {
	case wake:
		return int64(threads.Wake(addr, int(int32(f.DX)), 0)), true
	case wait:
		if addr%4 != 0 || !touch(addr, 4, space.Read) {
			return -int64(linux.EFAULT), true
		}
		deadline, errno := after(f.R10)
		switch {
		case errno != 0:
			return -int64(errno), true
		case *word32(addr) != uint32(f.DX):
			return -int64(linux.EAGAIN), true
		}
		return c.wait(addr, deadline, -int64(linux.ETIMEDOUT))
	}
	return -int64(linux.ENOSYS), true
}

// sleep is nanosleep(2).
func sleep(c *cpu, addr uint64) (int64, bool) {
	deadline, errno := after(addr)
	switch {
	case addr == 0:
		return -int64(linux.EFAULT), true
	case errno != 0:
		return -int64(errno), true
	}
	const short = 5e3 // in nanoseconds: the runtime's sleeps of 3 µs are over before a CPU could go idle
	if deadline-clock.now() < short {
		c.spin(deadline)
		return 0, true
	}
	return c.wait(keySleep, deadline, 0)
}

// spin waits in a loop, without the lock, so other CPUs can enter the kernel meanwhile.
func (c *cpu) spin(deadline int64) {
	k := clock // a copy: another CPU may correct the clock meanwhile
	unlock(c)
	for k.now() < deadline {
		c.flushIfAsked()
		relax()
	}
	lock(c)
}

// The runtime's poller waits in CallPoll. A device interrupt or a write to an eventfd(2) wakes it, as on Linux.
// Nothing else wakes it, because Loam's files make goroutines ready themselves. So the descriptor of
// epoll_create(2) has no set of descriptors and delivers no events.
const (
	pollFD = 1 << 20
	wakeFD = pollFD + 1
)

// pollWoken is set when wakeFD was written to and no poller has received that yet.
var pollWoken bool

// pollControl is epoll_ctl(2), by which the runtime adds wakeFD to its set. Any other descriptor returns EPERM, as
// a regular file does on Linux.
func pollControl(set uint64, op int, fd uint64) int64 {
	const add = 1
	if set != pollFD || fd != wakeFD || op != add {
		return -int64(linux.EPERM)
	}
	return 0
}

// poll is CallPoll. It waits until a bit of Rung is set, until wakeFD is written to, or for the number of
// nanoseconds in DI; without limit if that is negative. The result is 1 if wakeFD was written to, which is reset
// then, else 0.
func poll(c *cpu, f *amd64.Frame) (int64, bool) {
	deadline := int64(thread.Never)
	const longest = 1 << 62
	if timeout := int64(f.DI); timeout >= 0 && timeout < longest {
		deadline = clock.now() + timeout
	}
	switch {
	case pollWoken:
		pollWoken = false
		return 1, true
	case atomic.LoadUint64(&Rung) != 0:
		return 0, true
	}
	return c.wait(keyPoll, deadline, 0)
}

// wakePoller serves a write to wakeFD: it wakes the poller or sets pollWoken.
func wakePoller() { pollWoken = threads.Wake(keyPoll, 1, 1) == 0 }
