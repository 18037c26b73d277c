package kernel

import (
	"sync/atomic"
	"syscall"

	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Calls in which a thread waits. None waits here: the thread goes into the table
// of threads with a key, and returns from its call when it is woken, when a
// signal interrupts it, or when its time is over.

// Keys. Those of futexes are addresses of the program's memory, which are below
// these.
const (
	keySleep = 1<<64 - 1 // nobody wakes it
	keyPoll  = 1<<64 - 2
)

// wait puts the running thread to sleep, unless it has a signal to be told of: one that
// came from another CPU (tell) while this one was on its way here, which leave has not
// seen yet, and which interrupts nobody who begins to wait after it.
func (c *cpu) wait(key uint64, deadline, late int64) (int64, bool) {
	if th := threads.At(c.current); th.Pending&^th.Mask != 0 {
		return -int64(syscall.EINTR), true
	}
	threads.Wait(c.current, key, deadline, late)
	c.current = thread.None
	return 0, false
}

// after is the time that a struct timespec from now on ends at, or thread.Never.
func after(addr uint64) (deadline int64, errno syscall.Errno) {
	if addr == 0 {
		return thread.Never, 0
	}
	if !touch(addr, 16, space.Read) {
		return 0, syscall.EFAULT
	}
	seconds, nanos := int64(*word(addr)), int64(*word(addr + 8))
	if seconds < 0 || nanos < 0 || nanos >= 1e9 {
		return 0, syscall.EINVAL
	}
	const longest = 1 << 32 // a century, in seconds
	if seconds > longest {
		return thread.Never, 0
	}
	return clock.now() + seconds*1e9 + nanos, 0
}

// futex is futex(2) with the two operations that the runtime has.
func futex(c *cpu, f *amd64.Frame) (int64, bool) {
	const wait, wake, operation = 0, 1, 0x7f
	addr := f.DI
	switch f.SI & operation {
	case wake:
		return int64(threads.Wake(addr, int(int32(f.DX)), 0)), true
	case wait:
		if addr%4 != 0 || !touch(addr, 4, space.Read) {
			return -int64(syscall.EFAULT), true
		}
		deadline, errno := after(f.R10)
		switch {
		case errno != 0:
			return -int64(errno), true
		case *word32(addr) != uint32(f.DX):
			return -int64(syscall.EAGAIN), true
		}
		return c.wait(addr, deadline, -int64(syscall.ETIMEDOUT))
	}
	return -int64(syscall.ENOSYS), true
}

// sleep is nanosleep(2).
func sleep(c *cpu, addr uint64) (int64, bool) {
	deadline, errno := after(addr)
	switch {
	case addr == 0:
		return -int64(syscall.EFAULT), true
	case errno != 0:
		return -int64(errno), true
	}
	const short = 5e3 // what the runtime sleeps for 3 µs for is over before a CPU is asleep
	if deadline-clock.now() < short {
		c.spin(deadline)
		return 0, true
	}
	return c.wait(keySleep, deadline, 0)
}

// spin waits without sleeping. Other CPUs may enter the kernel meanwhile.
func (c *cpu) spin(deadline int64) {
	k := clock // it may be corrected meanwhile
	unlock(c)
	for k.now() < deadline {
		c.flushIfAsked()
		relax()
	}
	lock(c)
}

// The runtime's poller waits by CallPoll, and is woken by an interrupt of a device or by
// a write to an eventfd(2), as on Linux. Nothing else ever wakes it, since files of
// Loam's ready goroutines themselves: so there is no set of descriptors behind
// epoll_create(2), and no event that is handed over.
const (
	pollFD = 1 << 20
	wakeFD = pollFD + 1
)

// pollWoken is set when somebody has written to wakeFD and no poller has heard of it.
var pollWoken bool

// pollControl is epoll_ctl(2), by which the runtime puts wakeFD into its set. Whatever
// else is put there is like a regular file, which is always ready.
func pollControl(set uint64, op int, fd uint64) int64 {
	const add = 1
	if set != pollFD || fd != wakeFD || op != add {
		return -int64(syscall.EPERM)
	}
	return 0
}

// poll is CallPoll: it waits until a bit of Rung is set, until wakeFD is written to, or
// as many nanoseconds as DI says; for ever if that is negative. The result is 1 if wakeFD
// was written to, which is forgotten then.
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

// wakePoller is a write to wakeFD.
func wakePoller() { pollWoken = threads.Wake(keyPoll, 1, 1) == 0 }
