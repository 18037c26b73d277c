package call

import (
	"loam/abi/linux"
	"loam/posix"
)

// Calls about scheduling and descriptors of processes (posix/wishes.go).

func schedSetscheduler(c Caller, a Args) (uint64, linux.Errno) {
	priority, errno := c.schedParam(a.A1, a.A3)
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.SetScheduler(int32(a.A1), number(a.A2), priority))
}

// schedSetparam implements sched_setparam(2), which sets the priority and leaves the policy unchanged.
func schedSetparam(c Caller, a Args) (uint64, linux.Errno) {
	priority, errno := c.schedParam(a.A1, a.A2)
	if errno != 0 {
		return fail(errno)
	}
	policy, errno := c.Process.Scheduler(int32(a.A1))
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.SetScheduler(int32(a.A1), policy, priority))
}

// schedParam reads a struct sched_param for a process. Errors: EINVAL for the address 0 and for a negative process ID.
func (c Caller) schedParam(pid, addr uint64) (int, linux.Errno) {
	if addr == 0 || int32(pid) < 0 {
		return 0, linux.EINVAL
	}
	v, errno := c.readUint32(addr)
	return int(int32(v)), errno
}

// schedGetparam implements sched_getparam(2). It always returns priority 0, the only priority of the policies that Loam
// accepts.
func schedGetparam(c Caller, a Args) (uint64, linux.Errno) {
	if a.A2 == 0 {
		return fail(linux.EINVAL)
	}
	if _, errno := c.Process.Scheduler(int32(a.A1)); errno != 0 {
		return fail(errno)
	}
	return fail(c.writeUint32(a.A2, 0))
}

// schedPriority returns the function for sched_get_priority_min(2) or sched_get_priority_max(2).
func schedPriority(highest bool) Serve {
	return func(_ Caller, a Args) (uint64, linux.Errno) {
		least, most, errno := posix.SchedulerPriorities(number(a.A1))
		if highest {
			return result(most, errno)
		}
		return result(least, errno)
	}
}

// timeSlice is how long a goroutine may run while others are ready, in nanoseconds (forcePreemptNS of the Go runtime).
const timeSlice = 10e6

func schedRRGetInterval(c Caller, a Args) (uint64, linux.Errno) {
	if _, errno := c.Process.Scheduler(int32(a.A1)); errno != 0 {
		return fail(errno)
	}
	return c.put(a.A2, linux.SizeofTimespec, linux.NanoTimespec(timeSlice).Put)
}

// schedGetattr implements sched_getattr(2). Fields other than the size and the policy are 0.
func schedGetattr(c Caller, a Args) (uint64, linux.Errno) {
	const least, most, sizeAt, policyAt = 48, 4096, 0, 4 // sizes and offsets of struct sched_attr
	if a.A2 == 0 || a.A3 < least || a.A3 > most || a.A4 != 0 {
		return fail(linux.EINVAL)
	}
	policy, errno := c.Process.Scheduler(int32(a.A1))
	if errno != 0 {
		return fail(errno)
	}
	return c.put(a.A2, least, func(b []byte) {
		clear(b)
		le.PutUint32(b[sizeAt:], least)
		le.PutUint32(b[policyAt:], uint32(policy))
	})
}

// pidfdSendSignal implements pidfd_send_signal(2) for the process itself. A siginfo passed by the caller is ignored.
func pidfdSendSignal(c Caller, a Args) (uint64, linux.Errno) {
	const known = 7 // PIDFD_SIGNAL_THREAD, _THREAD_GROUP, _PROCESS_GROUP
	if a.A4&^known != 0 {
		return fail(linux.EINVAL)
	}
	if errno := c.Process.IsPidFD(fd(a.A1)); errno != 0 {
		return fail(errno)
	}
	return kill(c, Args{A1: uint64(c.Process.PID()), A2: a.A2})
}

// unshare implements unshare(2), which succeeds only without flags: there are no namespaces, and a program cannot leave what
// its threads share.
func unshare(_ Caller, a Args) (uint64, linux.Errno) {
	const threads, spaces = 0x70f00, 0x7e020080 // CLONE_VM to CLONE_SYSVSEM; CLONE_NEWTIME, CLONE_NEWNS and other namespaces
	switch {
	case a.A1&^(threads|spaces) != 0:
		return fail(linux.EINVAL)
	case a.A1 != 0:
		return fail(linux.EPERM)
	}
	return fail(0)
}

// setns implements setns(2): no descriptor is a namespace.
func setns(c Caller, a Args) (uint64, linux.Errno) {
	if _, errno := c.Process.Fstat(fd(a.A1)); errno != 0 {
		return fail(errno)
	}
	return fail(linux.EINVAL)
}

// Options of wait4(2) and waitid(2).
const (
	waitHang, waitUntraced, waitExited, waitContinued = 1, 2, 4, 8

	waitKeep  = 1 << 24     // WNOWAIT
	waitKinds = 0xe000_0000 // __WNOTHREAD, __WALL and __WCLONE
)

// wait4 implements wait4(2) for a process without children.
func wait4(_ Caller, a Args) (uint64, linux.Errno) {
	if uint32(a.A3)&^(waitHang|waitUntraced|waitContinued|waitKinds) != 0 {
		return fail(linux.EINVAL)
	}
	return fail(linux.ECHILD)
}

// waitid implements waitid(2) for a process without children. As on Linux, it clears the siginfo even if it fails.
func waitid(c Caller, a Args) (uint64, linux.Errno) {
	const siginfoSize = 28 // bytes that waitid writes
	errno := c.waitidErrno(a)
	if a.A3 != 0 {
		if bad := c.Memory.Write(a.A3, make([]byte, siginfoSize)); bad != 0 {
			return fail(bad)
		}
	}
	return fail(errno)
}

func (c Caller) waitidErrno(a Args) linux.Errno {
	const all, ofProcess, ofGroup, ofDescriptor = 0, 1, 2, 3
	options, id := uint32(a.A4), int32(a.A2)
	if options&^(waitHang|waitUntraced|waitExited|waitContinued|waitKeep|waitKinds) != 0 || options&(waitUntraced|waitExited|waitContinued) == 0 {
		return linux.EINVAL
	}
	switch kind := number(a.A1); {
	case kind < all || kind > ofDescriptor, kind == ofProcess && id <= 0, kind > ofProcess && id < 0:
		return linux.EINVAL
	case kind == ofDescriptor:
		if errno := c.Process.IsPidFD(fd(a.A2)); errno != 0 {
			return errno
		}
	}
	return linux.ECHILD
}

// personality implements personality(2). It always returns 0: the execution domain of Linux without flags.
func personality(_ Caller, a Args) (uint64, linux.Errno) {
	const query = 1<<32 - 1
	if uint32(a.A1) != 0 && uint32(a.A1) != query {
		return fail(linux.EINVAL)
	}
	return fail(0)
}

func msync(_ Caller, a Args) (uint64, linux.Errno) {
	const async, invalidate, sync = 1, 2, 4
	if a.A3&^(async|invalidate|sync) != 0 || a.A3&(async|sync) == async|sync || a.A1%pageSize != 0 {
		return fail(linux.EINVAL)
	}
	return fail(0)
}
