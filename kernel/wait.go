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

// wait puts the running thread to sleep.
func (c *cpu) wait(key uint64, deadline, late int64) (int64, bool) {
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
	return c.wait(keySleep, deadline, 0)
}

// The runtime's poller waits in epoll_pwait(2), and is woken by a write to an
// eventfd(2). Both are one thing here, since nothing else is ever in the set:
// files of Loam's ready goroutines themselves.
const (
	pollFD = 1 << 20
	wakeFD = pollFD + 1
)

var (
	pollWoken bool   // somebody has written to wakeFD since it was read last
	pollData  uint64 // what epoll_ctl was given for wakeFD
)

// pollControl is epoll_ctl(2). Whatever else is put into a set is like a regular
// file, which is always ready.
func pollControl(set uint64, op int, fd, event uint64) int64 {
	const add, dataOffset, size = 1, 4, 12
	switch {
	case set != pollFD || fd != wakeFD || op != add:
		return -int64(syscall.EPERM)
	case !touch(event, size, space.Read):
		return -int64(syscall.EFAULT)
	}
	pollData = uint64(*word32(event + dataOffset)) | uint64(*word32(event + dataOffset + 4))<<32
	return 0
}

// poll is epoll_pwait(2): events in SI, their greatest number in DX, milliseconds
// in R10.
func poll(c *cpu, f *amd64.Frame) (int64, bool) {
	const in, size = 1, 12
	switch timeout := int64(int32(f.R10)); {
	case f.DI != pollFD:
		return -int64(syscall.EBADF), true
	case pollWoken:
		if !touch(f.SI, size, space.Write) {
			return -int64(syscall.EFAULT), true
		}
		*word32(f.SI), *word32(f.SI + 4), *word32(f.SI + 8) = in, uint32(pollData), uint32(pollData>>32)
		return 1, true
	case timeout == 0, atomic.LoadUint64(&Rung) != 0:
		return 0, true
	case timeout < 0:
		return c.wait(keyPoll, thread.Never, 0)
	default:
		return c.wait(keyPoll, clock.now()+timeout*1e6, 0)
	}
}

// wakePoller is a write to wakeFD. Who waits is told that it was interrupted, and
// asks again.
func wakePoller() {
	pollWoken = true
	threads.Wake(keyPoll, thread.Max, -int64(syscall.EINTR))
}
