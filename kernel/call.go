package kernel

import (
	"syscall"

	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Calls that package syscall does not name.
const (
	sysGetcpu    = 309
	sysGetrandom = 318
)

// call serves a system call: what the Go runtime needs of Linux, and no more. It
// reports false if the thread does not go on with a result: it waits or has ended.
// Arguments are as Linux has them.
//
// long: it is a table.
func call(c *cpu, f *amd64.Frame) (result int64, returns bool) {
	th := threads.At(c.current)
	switch f.AX {
	// Memory.
	case syscall.SYS_MMAP:
		result = mmap(f.DI, f.SI, int(int32(f.DX)), int(int32(f.R10)))
	case syscall.SYS_MUNMAP:
		result = munmap(f.DI, f.SI)
	case syscall.SYS_MPROTECT:
		result = mprotect(f.DI, f.SI, int(int32(f.DX)))
	case syscall.SYS_MADVISE:
		result = madvise(f.DI, f.SI, int(int32(f.DX)))
	case syscall.SYS_MINCORE:
		result = mincore(f.DI)
	case syscall.SYS_MLOCK, syscall.SYS_MUNLOCK, syscall.SYS_MLOCKALL, syscall.SYS_MUNLOCKALL: // nothing is ever put elsewhere

	// Threads.
	case syscall.SYS_CLONE:
		result = clone(th, f, f.DI, f.SI, f.R8)
	case syscall.SYS_EXIT:
		threads.End(c.current)
		c.current = thread.None
		return 0, false
	case syscall.SYS_EXIT_GROUP:
		powerOff(uint32(f.DI) & 0xff)
	case syscall.SYS_ARCH_PRCTL:
		result = setBase(th, f.DI, f.SI)
	case syscall.SYS_SCHED_YIELD:
		c.giveWay()
	case syscall.SYS_SCHED_GETAFFINITY:
		result = affinity(f.SI, f.DX)
	case syscall.SYS_SCHED_SETAFFINITY:
		result = setAffinity(f.SI, f.DX)
	case sysGetcpu:
		result = where(c, f.DI, f.SI)
	case syscall.SYS_GETPRIORITY:
		result = middle
	case syscall.SYS_GETTID:
		result = int64(c.current)
	case syscall.SYS_GETPID:
		result = programID
	case syscall.SYS_FUTEX:
		return futex(c, f)
	case syscall.SYS_NANOSLEEP:
		return sleep(c, f.DI)

	// Signals.
	case syscall.SYS_RT_SIGACTION:
		result = setAction(int32(f.DI), f.SI, f.DX, f.R10)
	case syscall.SYS_RT_SIGPROCMASK:
		result = setMask(th, int(int32(f.DI)), f.SI, f.DX, f.R10)
	case syscall.SYS_SIGALTSTACK:
		result = setSignalStack(th, f.SP, f.DI, f.SI)
	case syscall.SYS_RT_SIGRETURN:
		result = handlerReturns(th, f)
	case syscall.SYS_TGKILL:
		result = tell(c, thread.ID(int32(f.SI)), int32(f.DX))
	case syscall.SYS_TKILL:
		result = tell(c, thread.ID(int32(f.DI)), int32(f.SI))
	case syscall.SYS_KILL:
		result = tellAny(c, int32(f.SI))

	// Time.
	case syscall.SYS_CLOCK_GETTIME:
		result = clockGettime(c, int(int32(f.DI)), f.SI)
	case syscall.SYS_CLOCK_GETRES:
		result = clockGetres(int(int32(f.DI)), f.SI)
	case syscall.SYS_GETTIMEOFDAY:
		result = gettimeofday(f.DI, f.SI)
	case syscall.SYS_TIME:
		result = seconds(f.DI)
	case syscall.SYS_TIMES:
		result = times(c, f.DI)
	case syscall.SYS_TIMER_CREATE:
		result = createTimer(c, int(int32(f.DI)), f.SI, f.DX)
	case syscall.SYS_TIMER_SETTIME:
		result = setTimer(f.DI, f.SI, f.DX, f.R10)
	case syscall.SYS_TIMER_DELETE:
		result = deleteTimer(f.DI)
	case syscall.SYS_SETITIMER:
		result = setIntervalTimer(int(int32(f.DI)), f.SI, f.DX)

	// Files.
	case syscall.SYS_WRITE:
		return writeFile(c, f.DI, f.SI, f.DX)
	case syscall.SYS_READ:
		return readFile(c, f.DI, f.SI, f.DX)
	case syscall.SYS_FCNTL:
		result = fcntl(f.DI, f.SI, f.DX)
	case syscall.SYS_PIPE2:
		result = makePipe(f.DI, f.SI)
	case syscall.SYS_OPENAT, syscall.SYS_OPEN:
		result = -int64(syscall.ENOENT)
	case syscall.SYS_EPOLL_CREATE1:
		result = pollFD
	case syscall.SYS_EVENTFD2:
		result = wakeFD
	case syscall.SYS_EPOLL_CTL:
		result = pollControl(f.DI, int(int32(f.SI)), f.DX)
	case CallPoll:
		return poll(c, f)
	case CallShare:
		c.hurry()
	case syscall.SYS_CLOSE:
		result = closeFile(f.DI)

	// The machine.
	case syscall.SYS_UNAME:
		result = uname(f.DI)
	case syscall.SYS_SYSINFO:
		result = sysinfo(f.DI)
	case syscall.SYS_GETUID, syscall.SYS_GETGID, syscall.SYS_GETEUID, syscall.SYS_GETEGID, syscall.SYS_GETGROUPS:
	case syscall.SYS_GETPPID: // nobody
	case syscall.SYS_GETPGID, syscall.SYS_GETPGRP, syscall.SYS_GETSID:
		result = programID
	case syscall.SYS_GETRLIMIT:
		result = limits(f.DI, 0, f.SI)
	case syscall.SYS_SETRLIMIT:
		result = limits(f.DI, f.SI, 0)
	case syscall.SYS_PRLIMIT64:
		result = limits(f.SI, f.DX, f.R10)
	case syscall.SYS_GETRUSAGE:
		result = usage(c, int(int32(f.DI)), f.SI)
	case sysGetrandom:
		result = getRandom(f.DI, f.SI)
	case syscall.SYS_PRCTL:
		result = -int64(syscall.EINVAL)
	default:
		result = deviceCall(f)
		if result == -int64(syscall.ENOSYS) {
			unserved[min(f.AX, uint64(len(unserved)-1))]++
		}
	}
	return result, true
}

// middle is the priority that all have, as the system call tells it: 20 less the nice value.
const middle = 20

// programID is the process that the program is, as Linux numbers them.
const programID = 1

// affinity fills in the set of CPUs that there are.
func affinity(size, addr uint64) int64 {
	const word64 = 8
	switch {
	case size < word64:
		return -int64(syscall.EINVAL)
	case !touch(addr, word64, space.Write):
		return -int64(syscall.EFAULT)
	}
	*word(addr) = 1<<uint(cpuCount) - 1
	return word64
}

// setAffinity checks a set of CPUs, which holds no thread back from the others.
func setAffinity(size, addr uint64) int64 {
	const word64 = 8
	switch {
	case size < word64:
		return -int64(syscall.EINVAL)
	case !touch(addr, word64, space.Read):
		return -int64(syscall.EFAULT)
	case *word(addr)&(1<<uint(cpuCount)-1) == 0:
		return -int64(syscall.EINVAL)
	}
	return 0
}

// setBase is arch_prctl(2): it sets where a thread has its own variables.
func setBase(th *thread.Thread, code, addr uint64) int64 {
	const setFS = 0x1002
	if code != setFS {
		return -int64(syscall.EINVAL)
	}
	th.FSBase = addr
	return 0
}

// clone makes a thread that goes on from the same place with another stack. It
// makes no processes.
func clone(parent *thread.Thread, f *amd64.Frame, flags, stack, base uint64) int64 {
	const vm, sameThreads, setTLS = 0x100, 0x10000, 0x80000
	if flags&(vm|sameThreads) != vm|sameThreads || stack == 0 {
		return -int64(syscall.ENOSYS)
	}
	id, ok := newThread()
	if !ok {
		return -int64(syscall.EAGAIN)
	}
	th := threads.At(id)
	th.Mask, th.FSBase = parent.Mask, parent.FSBase
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
