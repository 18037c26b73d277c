package kernel

import (
	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/limit"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Each system call that the kernel serves has a function in this file, named after the call. The function call in
// table.go selects one by the number of the call; table.go is generated from the table of calls in posix/call. The
// bool result is false if the thread does not resume with a result: it now waits or has ended. Arguments have the
// types and order that Linux defines.

// System calls about memory.

func (k *core) callMmap(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.mmap(f.DI, f.SI, int(int32(f.DX)), int(int32(f.R10))), true
}

func (k *core) callMunmap(_ *cpu, f *amd64.Frame) (int64, bool) { return k.munmap(f.DI, f.SI), true }

func (k *core) callMprotect(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.mprotect(f.DI, f.SI, int(int32(f.DX))), true
}

func (k *core) callMadvise(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.madvise(f.DI, f.SI, int(int32(f.DX))), true
}

func (k *core) callMincore(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.mincore(f.DI, f.SI, f.DX), true
}

func (k *core) callMremap(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.mremap(f.DI, f.SI, f.DX, int(int32(f.R10))), true
}

// Memory is never swapped out, so the mlock family only checks its arguments.

func (k *core) callMlock(_ *cpu, f *amd64.Frame) (int64, bool) { return k.mlock(f.DI, f.SI), true }

func (k *core) callMlock2(_ *cpu, f *amd64.Frame) (int64, bool) {
	const onFault = 1
	if f.DX&^onFault != 0 {
		return -int64(linux.EINVAL), true
	}
	return k.mlock(f.DI, f.SI), true
}

func (k *core) callMunlock(_ *cpu, f *amd64.Frame) (int64, bool) { return k.mlock(f.DI, f.SI), true }

func (k *core) callMlockall(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func (k *core) callMunlockall(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

// System calls about threads.

func (k *core) callClone(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.clone(k.threads.At(c.current), f, f.DI, f.SI, f.R8), true
}

func (k *core) callExit(c *cpu, _ *amd64.Frame) (int64, bool) {
	k.threads.End(c.current)
	c.current = thread.None
	return 0, false
}

func (k *core) callExitGroup(_ *cpu, f *amd64.Frame) (int64, bool) {
	k.powerOff(uint32(f.DI) & 0xff)
	return 0, true
}

func (k *core) callArchPrctl(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.setBase(k.threads.At(c.current), f.DI, f.SI), true
}

func (k *core) callSchedYield(c *cpu, _ *amd64.Frame) (int64, bool) {
	c.giveWay()
	return 0, true
}

func (k *core) callSchedGetaffinity(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.affinity(f.SI, f.DX), true
}

func (k *core) callSchedSetaffinity(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.setAffinity(f.SI, f.DX), true
}

func (k *core) callGetcpu(c *cpu, f *amd64.Frame) (int64, bool) { return k.where(c, f.DI, f.SI), true }

func (k *core) callGetpriority(_ *cpu, _ *amd64.Frame) (int64, bool) { return middle, true }

func (k *core) callGettid(c *cpu, _ *amd64.Frame) (int64, bool) { return int64(c.current), true }

func (k *core) callGetpid(_ *cpu, _ *amd64.Frame) (int64, bool) { return programID, true }

func (k *core) callFutex(c *cpu, f *amd64.Frame) (int64, bool) { return k.futex(c, f) }

func (k *core) callClockNanosleep(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.sleepBy(c, int(int32(f.DI)), f.SI, f.DX)
}

func (k *core) callPause(c *cpu, _ *amd64.Frame) (int64, bool) { return k.untilSignal(c) }

func (k *core) callMembarrier(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.memoryBarrier(f.DI, f.SI), true
}

func (k *core) callNanosleep(c *cpu, f *amd64.Frame) (int64, bool) { return k.sleep(c, f.DI) }

// System calls about signals.

func (k *core) callRtSigaction(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.setAction(int32(f.DI), f.SI, f.DX, f.R10), true
}

func (k *core) callRtSigprocmask(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.setMask(k.threads.At(c.current), int(int32(f.DI)), f.SI, f.DX, f.R10), true
}

func (k *core) callRtSigpending(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.pendingSignals(k.threads.At(c.current), f.DI, f.SI), true
}

func (k *core) callRtSigtimedwait(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.seek(c, f.DI, f.SI, f.DX, f.R10)
}

func (k *core) callSigaltstack(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.setSignalStack(k.threads.At(c.current), f.SP, f.DI, f.SI), true
}

func (k *core) callRtSigreturn(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.handlerReturns(k.threads.At(c.current), f), true
}

func (k *core) callTgkill(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.signalThread(c, thread.ID(int32(f.SI)), int32(f.DX)), true
}

func (k *core) callTkill(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.signalThread(c, thread.ID(int32(f.DI)), int32(f.SI)), true
}

// rt_sigqueueinfo(2) sends the signal, but not the siginfo that the caller passes.
func (k *core) callRtSigqueueinfo(c *cpu, f *amd64.Frame) (int64, bool) {
	if int32(f.DI) != programID {
		return -int64(linux.ESRCH), true
	}
	return k.signalProgram(c, int32(f.SI)), true
}

func (k *core) callKill(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.signalProgram(c, int32(f.SI)), true
}

// System calls about time.

func (k *core) callClockGettime(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.clockGettime(c, int(int32(f.DI)), f.SI), true
}

func (k *core) callClockGetres(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.clockGetres(int(int32(f.DI)), f.SI), true
}

func (k *core) callGettimeofday(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.gettimeofday(f.DI, f.SI), true
}

func (k *core) callTime(_ *cpu, f *amd64.Frame) (int64, bool) { return k.seconds(f.DI), true }

func (k *core) callTimes(c *cpu, f *amd64.Frame) (int64, bool) { return k.times(c, f.DI), true }

func (k *core) callTimerCreate(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.createTimer(c, int(int32(f.DI)), f.SI, f.DX), true
}

func (k *core) callTimerSettime(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.setTimer(f.DI, f.SI, f.DX, f.R10), true
}

func (k *core) callTimerDelete(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.deleteTimer(f.DI), true
}

func (k *core) callSetitimer(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.setIntervalTimer(int(int32(f.DI)), f.SI, f.DX), true
}

// System calls about files.

func (k *core) callWrite(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.writeFile(c, f.DI, f.SI, f.DX)
}

func (k *core) callRead(c *cpu, f *amd64.Frame) (int64, bool) { return k.readFile(c, f.DI, f.SI, f.DX) }

func (k *core) callFcntl(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.fcntl(f.DI, f.SI, f.DX), true
}

func (k *core) callPipe2(_ *cpu, f *amd64.Frame) (int64, bool) { return k.makePipe(f.DI, f.SI), true }

func (k *core) callOpenat(_ *cpu, _ *amd64.Frame) (int64, bool) { return -int64(linux.ENOENT), true }

func (k *core) callOpen(_ *cpu, _ *amd64.Frame) (int64, bool) { return -int64(linux.ENOENT), true }

func (k *core) callEpollCreate1(_ *cpu, _ *amd64.Frame) (int64, bool) { return pollFD, true }

func (k *core) callEventfd2(_ *cpu, _ *amd64.Frame) (int64, bool) { return wakeFD, true }

func (k *core) callEpollCtl(_ *cpu, f *amd64.Frame) (int64, bool) {
	return pollControl(f.DI, int(int32(f.SI)), f.DX), true
}

func (k *core) callClose(_ *cpu, f *amd64.Frame) (int64, bool) { return k.closeFile(f.DI), true }

// System calls about the machine.

func (k *core) callUname(_ *cpu, f *amd64.Frame) (int64, bool) { return k.uname(f.DI), true }

func (k *core) callSysinfo(_ *cpu, f *amd64.Frame) (int64, bool) { return k.sysinfo(f.DI), true }

func (k *core) callGetuid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func (k *core) callGetgid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func (k *core) callGeteuid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func (k *core) callGetegid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func (k *core) callGetgroups(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

// getppid(2) returns 0: the program has no parent process.

func (k *core) callGetppid(*cpu, *amd64.Frame) (int64, bool) { return 0, true }

func (k *core) callGetpgid(_ *cpu, f *amd64.Frame) (int64, bool) { return ofProgram(f.DI), true }

func (k *core) callGetpgrp(_ *cpu, _ *amd64.Frame) (int64, bool) { return programID, true }

func (k *core) callGetsid(_ *cpu, f *amd64.Frame) (int64, bool) { return ofProgram(f.DI), true }

func (k *core) callGetrlimit(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.limits(f.DI, 0, f.SI), true
}

func (k *core) callSetrlimit(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.limits(f.DI, f.SI, 0), true
}

func (k *core) callPrlimit64(_ *cpu, f *amd64.Frame) (int64, bool) {
	if pid := uint32(f.DI); pid != 0 && pid != programID {
		return -int64(linux.ESRCH), true
	}
	return k.limits(f.SI, f.DX, f.R10), true
}

// limits implements prlimit(2). set is the address of the new limits, and addr the address for the old ones; 0: none.
func (k *core) limits(resource, set, addr uint64) int64 {
	const size = 16
	switch {
	case resource >= limit.Resources:
		return -int64(linux.EINVAL)
	case set != 0 && !k.touch(set, size, space.Read), addr != 0 && !k.touch(addr, size, space.Write):
		return -int64(linux.EFAULT)
	}
	soft, hard := k.limitsSet.Get(resource)
	if set != 0 {
		if errno := k.limitsSet.Set(resource, *word(set), *word(set + 8)); errno != 0 {
			return -int64(errno)
		}
	}
	if addr != 0 {
		*word(addr), *word(addr + 8) = soft, hard
	}
	return 0
}

func (k *core) callGetrusage(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.usage(c, int(int32(f.DI)), f.SI), true
}

func (k *core) callGetrandom(_ *cpu, f *amd64.Frame) (int64, bool) {
	const nonblock, random, insecure = 1, 2, 4
	if f.DX&^(nonblock|random|insecure) != 0 || f.DX&(random|insecure) == random|insecure {
		return -int64(linux.EINVAL), true
	}
	return k.getRandom(f.DI, f.SI), true
}

func (k *core) callGetresuid(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.ownIDs(f.DI, f.SI, f.DX), true
}

func (k *core) callGetresgid(_ *cpu, f *amd64.Frame) (int64, bool) {
	return k.ownIDs(f.DI, f.SI, f.DX), true
}

func (k *core) callPrctl(c *cpu, f *amd64.Frame) (int64, bool) {
	return k.nameThread(k.threads.At(c.current), f.DI, f.SI), true
}

// ownCall serves calls that Linux does not have, which Loam's drivers make: see device.go.
func (k *core) ownCall(c *cpu, f *amd64.Frame) (result int64, returns bool) {
	switch f.AX {
	case CallPoll:
		return k.poll(c, f)
	case CallStandIn:
		return k.standIn(c)
	case CallShare:
		c.shareSoon()
		return 0, true
	}
	if result = k.deviceCall(c, f); result == -int64(linux.ENOSYS) {
		k.unserved[min(f.AX, uint64(len(k.unserved)-1))]++
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
func (k *core) affinity(size, addr uint64) int64 {
	const word64 = 8
	switch {
	case size < word64 || size%word64 != 0:
		return -int64(linux.EINVAL)
	case !k.touch(addr, word64, space.Write):
		return -int64(linux.EFAULT)
	}
	*word(addr) = 1<<uint(k.cpuCount) - 1
	return word64
}

// setAffinity implements sched_setaffinity(2). It checks the set of CPUs, size bytes, and then ignores it: every thread may
// run on every CPU.
func (k *core) setAffinity(size, addr uint64) int64 {
	const word64 = 8
	size = min(size, word64)
	if !k.touch(addr, size, space.Read) {
		return -int64(linux.EFAULT)
	}
	set := uint64(0)
	for i, b := range bytesAt(addr, int(size)) {
		set |= uint64(b) << (8 * i)
	}
	if set&(1<<uint(k.cpuCount)-1) == 0 {
		return -int64(linux.EINVAL)
	}
	return 0
}

// setBase implements arch_prctl(2) with ARCH_SET_FS and ARCH_GET_FS, the base address of a thread's thread-local storage. It
// returns EPERM for a value that the processor would not load.
func (k *core) setBase(th *thread.Thread, code, addr uint64) int64 {
	const setFS, getFS, size = 0x1002, 0x1003, 8
	switch code {
	case setFS:
		if !canonical(addr) {
			return -int64(linux.EPERM)
		}
		th.FSBase = addr
		return 0
	case getFS:
		if !k.touch(addr, size, space.Write) {
			return -int64(linux.EFAULT)
		}
		*word(addr) = th.FSBase
		return 0
	}
	return -int64(linux.EINVAL)
}

// canonical reports whether an address has equal bits from 47 to 63: SDM volume 1, 3.3.7.1.
func canonical(addr uint64) bool {
	const unused = 16
	return uint64(int64(addr<<unused)>>unused) == addr
}

// nameThread implements prctl(2) with PR_SET_NAME and PR_GET_NAME. The caller, package posix/call, passes a buffer for a
// whole name.
func (k *core) nameThread(th *thread.Thread, option, addr uint64) int64 {
	const setName, getName = 15, 16
	switch option {
	case setName:
		if !k.touch(addr, uint64(len(th.Name)), space.Read) {
			return -int64(linux.EFAULT)
		}
		copy(th.Name[:len(th.Name)-1], bytesAt(addr, len(th.Name)))
		return 0
	case getName:
		if !k.touch(addr, uint64(len(th.Name)), space.Write) {
			return -int64(linux.EFAULT)
		}
		copy(bytesAt(addr, len(th.Name)), th.Name[:])
		return 0
	}
	return -int64(linux.EINVAL)
}

// ownIDs implements getresuid(2) and getresgid(2): all IDs are 0.
func (k *core) ownIDs(addrs ...uint64) int64 {
	for _, addr := range addrs {
		if !k.touch(addr, 4, space.Write) {
			return -int64(linux.EFAULT)
		}
		*word32(addr) = 0
	}
	return 0
}

// memoryBarrier implements membarrier(2). It flushes translations on all CPUs. A CPU that runs the program enters the kernel
// for the flush, which is a barrier on that CPU. All CPUs of a machine run the one program.
func (k *core) memoryBarrier(command, flags uint64) int64 {
	const query, global, globalExpedited, registerGlobal, private, registerPrivate = 0, 1, 2, 4, 8, 16
	switch {
	case flags != 0:
		return -int64(linux.EINVAL)
	case command == query:
		return global | globalExpedited | registerGlobal | private | registerPrivate
	case command == registerGlobal:
		return 0
	case command == registerPrivate:
		k.barrierRegistered = true
		return 0
	case command == private && !k.barrierRegistered:
		return -int64(linux.EPERM)
	case command == global, command == globalExpedited, command == private:
		k.flushRange(boot.DynamicLow, boot.DynamicLow+amd64.PageSize, false)
		return 0
	}
	return -int64(linux.EINVAL)
}

// clone implements clone(2) for threads: the new thread resumes at the same instruction with another stack. A call that
// would create a process returns ENOSYS.
func (k *core) clone(parent *thread.Thread, f *amd64.Frame, flags, stack, base uint64) int64 {
	if flags&(linux.CLONE_VM|linux.CLONE_THREAD) != linux.CLONE_VM|linux.CLONE_THREAD || stack == 0 {
		return -int64(linux.ENOSYS)
	}
	if flags&linux.CLONE_SETTLS != 0 && !canonical(base) {
		return -int64(linux.EPERM)
	}
	id, ok := k.newThread()
	if !ok {
		return k.noThread()
	}
	th := k.threads.At(id)
	th.Mask, th.FSBase, th.Name = parent.Mask, parent.FSBase, parent.Name
	if flags&linux.CLONE_SETTLS != 0 {
		th.FSBase = base
	}
	child := frameOf(th.Page)
	*child = *f
	child.AX, child.SP = 0, stack
	if f.Vector != amd64.VectorCall {
		copy(bytesAt(uint64(th.Page), int(k.xsaveSize)), bytesAt(uint64(parent.Page), int(k.xsaveSize)))
	}
	k.threads.Put(id)
	return int64(id)
}

// noThread prints that no further thread can be created, and returns the result of clone. The result is not EAGAIN, because
// the Go runtime would then blame the user's limit (ulimit -u).
func (k *core) noThread() int64 {
	free, total := k.pages.Pages()
	k.say("loam: the program has ")
	k.sayInt(uint64(k.threads.Last()))
	k.say(" threads and wants one more; ")
	if free == 0 {
		k.say("none of ")
		k.sayInt(total * amd64.PageSize >> 20)
		k.say(" MiB is free; give the machine more (-m)\n")
	} else {
		k.say("a machine has no more\n")
	}
	return -int64(linux.ENOMEM)
}
