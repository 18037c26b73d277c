package kernel

import (
	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Each system call that the kernel serves has a function in this file, named after the call. The function call in
// table.go selects one by the number of the call; table.go is generated from the table of calls in posix/call. The
// bool result is false if the thread does not resume with a result: it now waits or has ended. Arguments have the
// types and order that Linux defines.

// System calls about memory.

func callMmap(_ *cpu, f *amd64.Frame) (int64, bool) {
	return mmap(f.DI, f.SI, int(int32(f.DX)), int(int32(f.R10))), true
}

func callMunmap(_ *cpu, f *amd64.Frame) (int64, bool) { return munmap(f.DI, f.SI), true }

func callMprotect(_ *cpu, f *amd64.Frame) (int64, bool) {
	return mprotect(f.DI, f.SI, int(int32(f.DX))), true
}

func callMadvise(_ *cpu, f *amd64.Frame) (int64, bool) {
	return madvise(f.DI, f.SI, int(int32(f.DX))), true
}

func callMincore(_ *cpu, f *amd64.Frame) (int64, bool) { return mincore(f.DI, f.SI, f.DX), true }

func callMremap(_ *cpu, f *amd64.Frame) (int64, bool) {
	return mremap(f.DI, f.SI, f.DX, int(int32(f.R10))), true
}

// Memory is never swapped out, so the mlock family only checks its arguments.

func callMlock(_ *cpu, f *amd64.Frame) (int64, bool) { return mlock(f.DI, f.SI), true }

func callMlock2(_ *cpu, f *amd64.Frame) (int64, bool) {
	const onFault = 1
	if f.DX&^onFault != 0 {
		return -int64(linux.EINVAL), true
	}
	return mlock(f.DI, f.SI), true
}

func callMunlock(_ *cpu, f *amd64.Frame) (int64, bool) { return mlock(f.DI, f.SI), true }

func callMlockall(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func callMunlockall(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

// System calls about threads.

func callClone(c *cpu, f *amd64.Frame) (int64, bool) {
	return clone(threads.At(c.current), f, f.DI, f.SI, f.R8), true
}

func callExit(c *cpu, _ *amd64.Frame) (int64, bool) {
	threads.End(c.current)
	c.current = thread.None
	return 0, false
}

func callExitGroup(_ *cpu, f *amd64.Frame) (int64, bool) {
	powerOff(uint32(f.DI) & 0xff)
	return 0, true
}

func callArchPrctl(c *cpu, f *amd64.Frame) (int64, bool) {
	return setBase(threads.At(c.current), f.DI, f.SI), true
}

func callSchedYield(c *cpu, _ *amd64.Frame) (int64, bool) {
	c.giveWay()
	return 0, true
}

func callSchedGetaffinity(_ *cpu, f *amd64.Frame) (int64, bool) { return affinity(f.SI, f.DX), true }

func callSchedSetaffinity(_ *cpu, f *amd64.Frame) (int64, bool) { return setAffinity(f.SI, f.DX), true }

func callGetcpu(c *cpu, f *amd64.Frame) (int64, bool) { return where(c, f.DI, f.SI), true }

func callGetpriority(_ *cpu, _ *amd64.Frame) (int64, bool) { return middle, true }

func callGettid(c *cpu, _ *amd64.Frame) (int64, bool) { return int64(c.current), true }

func callGetpid(_ *cpu, _ *amd64.Frame) (int64, bool) { return programID, true }

func callFutex(c *cpu, f *amd64.Frame) (int64, bool) { return futex(c, f) }

func callClockNanosleep(c *cpu, f *amd64.Frame) (int64, bool) {
	return sleepBy(c, int(int32(f.DI)), f.SI, f.DX)
}

func callPause(c *cpu, _ *amd64.Frame) (int64, bool) { return untilSignal(c) }

func callMembarrier(_ *cpu, f *amd64.Frame) (int64, bool) { return memoryBarrier(f.DI, f.SI), true }

func callNanosleep(c *cpu, f *amd64.Frame) (int64, bool) { return sleep(c, f.DI) }

// System calls about signals.

func callRtSigaction(_ *cpu, f *amd64.Frame) (int64, bool) {
	return setAction(int32(f.DI), f.SI, f.DX, f.R10), true
}

func callRtSigprocmask(c *cpu, f *amd64.Frame) (int64, bool) {
	return setMask(threads.At(c.current), int(int32(f.DI)), f.SI, f.DX, f.R10), true
}

func callRtSigpending(c *cpu, f *amd64.Frame) (int64, bool) {
	return pendingSignals(threads.At(c.current), f.DI, f.SI), true
}

func callRtSigtimedwait(c *cpu, f *amd64.Frame) (int64, bool) {
	return seek(c, f.DI, f.SI, f.DX, f.R10)
}

func callSigaltstack(c *cpu, f *amd64.Frame) (int64, bool) {
	return setSignalStack(threads.At(c.current), f.SP, f.DI, f.SI), true
}

func callRtSigreturn(c *cpu, f *amd64.Frame) (int64, bool) {
	return handlerReturns(threads.At(c.current), f), true
}

func callTgkill(c *cpu, f *amd64.Frame) (int64, bool) {
	return signalThread(c, thread.ID(int32(f.SI)), int32(f.DX)), true
}

func callTkill(c *cpu, f *amd64.Frame) (int64, bool) {
	return signalThread(c, thread.ID(int32(f.DI)), int32(f.SI)), true
}

// rt_sigqueueinfo(2) sends the signal, but not the siginfo that the caller passes.
func callRtSigqueueinfo(c *cpu, f *amd64.Frame) (int64, bool) {
	if int32(f.DI) != programID {
		return -int64(linux.ESRCH), true
	}
	return signalProgram(c, int32(f.SI)), true
}

func callKill(c *cpu, f *amd64.Frame) (int64, bool) { return signalProgram(c, int32(f.SI)), true }

// System calls about time.

func callClockGettime(c *cpu, f *amd64.Frame) (int64, bool) {
	return clockGettime(c, int(int32(f.DI)), f.SI), true
}

func callClockGetres(_ *cpu, f *amd64.Frame) (int64, bool) {
	return clockGetres(int(int32(f.DI)), f.SI), true
}

func callGettimeofday(_ *cpu, f *amd64.Frame) (int64, bool) { return gettimeofday(f.DI, f.SI), true }

func callTime(_ *cpu, f *amd64.Frame) (int64, bool) { return seconds(f.DI), true }

func callTimes(c *cpu, f *amd64.Frame) (int64, bool) { return times(c, f.DI), true }

func callTimerCreate(c *cpu, f *amd64.Frame) (int64, bool) {
	return createTimer(c, int(int32(f.DI)), f.SI, f.DX), true
}

func callTimerSettime(_ *cpu, f *amd64.Frame) (int64, bool) {
	return setTimer(f.DI, f.SI, f.DX, f.R10), true
}

func callTimerDelete(_ *cpu, f *amd64.Frame) (int64, bool) { return deleteTimer(f.DI), true }

func callSetitimer(_ *cpu, f *amd64.Frame) (int64, bool) {
	return setIntervalTimer(int(int32(f.DI)), f.SI, f.DX), true
}

// System calls about files.

func callWrite(c *cpu, f *amd64.Frame) (int64, bool) { return writeFile(c, f.DI, f.SI, f.DX) }

func callRead(c *cpu, f *amd64.Frame) (int64, bool) { return readFile(c, f.DI, f.SI, f.DX) }

func callFcntl(_ *cpu, f *amd64.Frame) (int64, bool) { return fcntl(f.DI, f.SI, f.DX), true }

func callPipe2(_ *cpu, f *amd64.Frame) (int64, bool) { return makePipe(f.DI, f.SI), true }

func callOpenat(_ *cpu, _ *amd64.Frame) (int64, bool) { return -int64(linux.ENOENT), true }

func callOpen(_ *cpu, _ *amd64.Frame) (int64, bool) { return -int64(linux.ENOENT), true }

func callEpollCreate1(_ *cpu, _ *amd64.Frame) (int64, bool) { return pollFD, true }

func callEventfd2(_ *cpu, _ *amd64.Frame) (int64, bool) { return wakeFD, true }

func callEpollCtl(_ *cpu, f *amd64.Frame) (int64, bool) {
	return pollControl(f.DI, int(int32(f.SI)), f.DX), true
}

func callClose(_ *cpu, f *amd64.Frame) (int64, bool) { return closeFile(f.DI), true }

// System calls about the machine.

func callUname(_ *cpu, f *amd64.Frame) (int64, bool) { return uname(f.DI), true }

func callSysinfo(_ *cpu, f *amd64.Frame) (int64, bool) { return sysinfo(f.DI), true }

func callGetuid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func callGetgid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func callGeteuid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func callGetegid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func callGetgroups(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

// getppid(2) returns 0: the program has no parent process.

func callGetppid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func callGetpgid(_ *cpu, f *amd64.Frame) (int64, bool) { return ofProgram(f.DI), true }

func callGetpgrp(_ *cpu, _ *amd64.Frame) (int64, bool) { return programID, true }

func callGetsid(_ *cpu, f *amd64.Frame) (int64, bool) { return ofProgram(f.DI), true }

func callGetrlimit(_ *cpu, f *amd64.Frame) (int64, bool) { return limits(f.DI, 0, f.SI), true }

func callSetrlimit(_ *cpu, f *amd64.Frame) (int64, bool) { return limits(f.DI, f.SI, 0), true }

func callPrlimit64(_ *cpu, f *amd64.Frame) (int64, bool) {
	if pid := uint32(f.DI); pid != 0 && pid != programID {
		return -int64(linux.ESRCH), true
	}
	return limits(f.SI, f.DX, f.R10), true
}

func callGetrusage(c *cpu, f *amd64.Frame) (int64, bool) {
	return usage(c, int(int32(f.DI)), f.SI), true
}

func callGetrandom(_ *cpu, f *amd64.Frame) (int64, bool) {
	const known = 7 // GRND_NONBLOCK, GRND_RANDOM and GRND_INSECURE together
	if f.DX&^known != 0 {
		return -int64(linux.EINVAL), true
	}
	return getRandom(f.DI, f.SI), true
}

func callGetresuid(_ *cpu, f *amd64.Frame) (int64, bool) { return ownIDs(f.DI, f.SI, f.DX), true }

func callGetresgid(_ *cpu, f *amd64.Frame) (int64, bool) { return ownIDs(f.DI, f.SI, f.DX), true }

func callPrctl(c *cpu, f *amd64.Frame) (int64, bool) {
	return nameThread(threads.At(c.current), f.DI, f.SI), true
}

// ownCall serves calls that Linux does not have, which Loam's drivers make: see device.go.
func ownCall(c *cpu, f *amd64.Frame) (result int64, returns bool) {
	switch f.AX {
	case CallPoll:
		return poll(c, f)
	case CallShare:
		c.shareSoon()
		return 0, true
	}
	if result = deviceCall(c, f); result == -int64(linux.ENOSYS) {
		unserved[min(f.AX, uint64(len(unserved)-1))]++
	}
	return result, true
}

// middle is the priority of every thread as getpriority(2) returns it: 20 minus the nice value 0.
const middle = 20

// programID is the process ID of the program.
const programID = 1

// ofProgram implements getpgid(2) and getsid(2) for the only process, the program: its process group and its
// session have its own ID. id is the argument; 0 means the caller.
func ofProgram(id uint64) int64 {
	if id := int32(id); id != 0 && id != programID {
		return -int64(linux.ESRCH)
	}
	return programID
}

// affinity implements sched_getaffinity(2): it stores the set of all CPUs, and returns the number of bytes written.
func affinity(size, addr uint64) int64 {
	const word64 = 8
	switch {
	case size < word64:
		return -int64(linux.EINVAL)
	case !touch(addr, word64, space.Write):
		return -int64(linux.EFAULT)
	}
	*word(addr) = 1<<uint(cpuCount) - 1
	return word64
}

// setAffinity implements sched_setaffinity(2). It checks the set of CPUs and then ignores it: every thread may run on every
// CPU.
func setAffinity(size, addr uint64) int64 {
	const word64 = 8
	switch {
	case size < word64:
		return -int64(linux.EINVAL)
	case !touch(addr, word64, space.Read):
		return -int64(linux.EFAULT)
	case *word(addr)&(1<<uint(cpuCount)-1) == 0:
		return -int64(linux.EINVAL)
	}
	return 0
}

// setBase implements arch_prctl(2) with ARCH_SET_FS and ARCH_GET_FS, the base address of a thread's thread-local storage.
func setBase(th *thread.Thread, code, addr uint64) int64 {
	const setFS, getFS, size = 0x1002, 0x1003, 8
	switch code {
	case setFS:
		th.FSBase = addr
		return 0
	case getFS:
		if !touch(addr, size, space.Write) {
			return -int64(linux.EFAULT)
		}
		*word(addr) = th.FSBase
		return 0
	}
	return -int64(linux.EINVAL)
}

// nameThread implements prctl(2) with PR_SET_NAME and PR_GET_NAME. The caller, package posix/call, passes a buffer for a
// whole name.
func nameThread(th *thread.Thread, option, addr uint64) int64 {
	const setName, getName = 15, 16
	switch option {
	case setName:
		if !touch(addr, uint64(len(th.Name)), space.Read) {
			return -int64(linux.EFAULT)
		}
		copy(th.Name[:len(th.Name)-1], bytesAt(addr, len(th.Name)))
		return 0
	case getName:
		if !touch(addr, uint64(len(th.Name)), space.Write) {
			return -int64(linux.EFAULT)
		}
		copy(bytesAt(addr, len(th.Name)), th.Name[:])
		return 0
	}
	return -int64(linux.EINVAL)
}

// ownIDs implements getresuid(2) and getresgid(2): all IDs are 0.
func ownIDs(addrs ...uint64) int64 {
	for _, addr := range addrs {
		if !touch(addr, 4, space.Write) {
			return -int64(linux.EFAULT)
		}
		*word32(addr) = 0
	}
	return 0
}

// barrierRegistered is set when the program has registered for private expedited barriers (membarrier(2)).
var barrierRegistered bool

// memoryBarrier implements membarrier(2). It flushes translations on all CPUs. A CPU that runs the program enters the kernel
// for the flush, which is a barrier on that CPU. All CPUs of a machine run the one program.
func memoryBarrier(command, flags uint64) int64 {
	const query, global, globalExpedited, registerGlobal, private, registerPrivate = 0, 1, 2, 4, 8, 16
	switch {
	case flags != 0:
		return -int64(linux.EINVAL)
	case command == query:
		return global | globalExpedited | registerGlobal | private | registerPrivate
	case command == registerGlobal:
		return 0
	case command == registerPrivate:
		barrierRegistered = true
		return 0
	case command == private && !barrierRegistered:
		return -int64(linux.EPERM)
	case command == global, command == globalExpedited, command == private:
		flushRange(boot.DynamicLow, boot.DynamicLow+amd64.PageSize, false)
		return 0
	}
	return -int64(linux.EINVAL)
}

// clone implements clone(2) for threads: the new thread resumes at the same instruction with another stack. A call that
// would create a process returns ENOSYS.
func clone(parent *thread.Thread, f *amd64.Frame, flags, stack, base uint64) int64 {
	const vm, sameThreads, setTLS = 0x100, 0x10000, 0x80000
	if flags&(vm|sameThreads) != vm|sameThreads || stack == 0 {
		return -int64(linux.ENOSYS)
	}
	id, ok := newThread()
	if !ok {
		return noThread()
	}
	th := threads.At(id)
	th.Mask, th.FSBase, th.Name = parent.Mask, parent.FSBase, parent.Name
	if flags&setTLS != 0 {
		th.FSBase = base
	}
	child := frameOf(th.Page)
	*child = *f
	child.AX, child.SP = 0, stack
	if f.Vector != amd64.VectorCall {
		copy(bytesAt(uint64(th.Page), int(xsaveSize)), bytesAt(uint64(parent.Page), int(xsaveSize)))
	}
	threads.Put(id)
	return int64(id)
}

// noThread prints that no further thread can be created, and returns the result of clone. The result is not EAGAIN, because
// the Go runtime would then blame the user's limit (ulimit -u).
func noThread() int64 {
	free, total := frames.Pages()
	say("loam: the program has ")
	sayInt(uint64(threads.Last()))
	say(" threads and wants one more; ")
	if free == 0 {
		say("none of ")
		sayInt(total * amd64.PageSize >> 20)
		say(" MiB is free; give the machine more (-m)\n")
	} else {
		say("a machine has no more\n")
	}
	return -int64(linux.ENOMEM)
}
