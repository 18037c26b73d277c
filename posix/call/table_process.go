package call

import "loam/abi/linux"

// Rows of Table: memory, IDs, limits, signals, threads and clocks of a process.
var processRows = []Row{
	{linux.SYS_MMAP, "mmap", "onniio", Personality | Runtime | Core | AtOnce, Unaffected, mapsOfFile, 0, mmap},
	{linux.SYS_MPROTECT, "mprotect", "oni", Personality | Runtime | Core | AtOnce, Unaffected, notOfShared, 0, ofMapping(linux.SYS_MPROTECT)},
	{linux.SYS_MUNMAP, "munmap", "on", Personality | Runtime | Core | AtOnce, Unaffected, "", 0, ofMapping(linux.SYS_MUNMAP)},
	{linux.SYS_MADVISE, "madvise", "oni", Personality | Runtime | Core | AtOnce, Unaffected, notOfShared, 0, ofMapping(linux.SYS_MADVISE)},
	{linux.SYS_MREMAP, "mremap", "onnio", Personality | Runtime | Core, Unaffected, oneOfShared, 0, mremap},
	{linux.SYS_MSYNC, "msync", "oni", Personality | Runtime, Unaffected, "", 0, msync},
	{linux.SYS_MINCORE, "mincore", "onp", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_MLOCK, "mlock", "on", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_MLOCK2, "mlock2", "oni", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_MUNLOCK, "munlock", "on", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_MLOCKALL, "mlockall", "i", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_MUNLOCKALL, "munlockall", "", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_KILL, "kill", "ii", Personality | Runtime | Core, Unaffected, onlyItself, 0, kill},
	{linux.SYS_TGKILL, "tgkill", "iii", Personality | Runtime | Core | AtOnce, Unaffected, onlyItself, 0, tgkill},
	{linux.SYS_TKILL, "tkill", "ii", Personality | Core | AtOnce, Unaffected, onlyItself, 0, tkill},
	{linux.SYS_UNAME, "uname", "p", Personality | Runtime | Core, Unaffected, "", 0, uname},
	{linux.SYS_SETUID, "setuid", "i", Personality, Unaffected, ownID, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.SetUserID(uint32(a.A1)))
	}},
	{linux.SYS_SETGID, "setgid", "i", Personality, Unaffected, ownID, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.SetGroupID(uint32(a.A1)))
	}},
	{linux.SYS_SETPGID, "setpgid", "ii", Personality, Unaffected, "the call succeeds only for the current group, and in a virtual machine for a child; otherwise it returns EPERM", 0, setpgid},
	{linux.SYS_SETREUID, "setreuid", "ii", Personality, Unaffected, ownID, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.SetUserIDs(uint32(a.A1), uint32(a.A2)))
	}},
	{linux.SYS_SETREGID, "setregid", "ii", Personality, Unaffected, ownID, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.SetGroupIDs(uint32(a.A1), uint32(a.A2)))
	}},
	{linux.SYS_SETSID, "setsid", "", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_SETGROUPS, "setgroups", "np", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_SETRESUID, "setresuid", "iii", Personality, Unaffected, ownID, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.SetUserIDs(uint32(a.A1), uint32(a.A2), uint32(a.A3)))
	}},
	{linux.SYS_SETRESGID, "setresgid", "iii", Personality, Unaffected, ownID, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.SetGroupIDs(uint32(a.A1), uint32(a.A2), uint32(a.A3)))
	}},
	{linux.SYS_SETFSUID, "setfsuid", "i", Personality, Unaffected, ownID, 0, func(c Caller, _ Args) (uint64, linux.Errno) {
		return result(c.Process.SetFileUserID(), 0)
	}},
	{linux.SYS_SETFSGID, "setfsgid", "i", Personality, Unaffected, ownID, 0, func(c Caller, _ Args) (uint64, linux.Errno) {
		return result(c.Process.SetFileGroupID(), 0)
	}},
	{linux.SYS_CAPGET, "capget", "pp", Personality, Unaffected, "", 0, capget},
	{linux.SYS_CAPSET, "capset", "pp", Personality, Unaffected, "the call succeeds only for the current capabilities; otherwise it returns EPERM", 0, capset},
	{linux.SYS_SETPRIORITY, "setpriority", "iii", Personality, Unaffected, "the call works only for the program itself; a higher nice value has no effect", 0, setpriority},
	{linux.SYS_PRCTL, "prctl", "ipppp", Personality | Runtime | Core, Unaffected, fewPrctls, 0, prctl},
	{linux.SYS_GETRLIMIT, "getrlimit", "ip", Personality | Runtime | Core, Unaffected, noCores, 0, getrlimit},
	{linux.SYS_SETRLIMIT, "setrlimit", "ip", Personality | Runtime | Core, Unaffected, noCores, 0, setrlimit},
	{linux.SYS_PRLIMIT64, "prlimit64", "iipp", Personality | Runtime | Core, Unaffected, noCores, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.limit(number(a.A1), unsigned(a.A2), a.A3, a.A4)
	}},
	{linux.SYS_ADJTIMEX, "adjtimex", "p", Personality, Unaffected, readOnlyTime, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.adjtime(linux.CLOCK_REALTIME, a.A1)
	}},
	{linux.SYS_CLOCK_ADJTIME, "clock_adjtime", "ip", Personality, Unaffected, readOnlyTime, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.adjtime(number(a.A1), a.A2)
	}},
	{linux.SYS_EXECVE, "execve", "spp", Personality, Unaffected, bySpawn, linux.ENOSYS, nil},
	{linux.SYS_WAIT4, "wait4", "ipip", Personality, Restarts, ofChildren, 0, wait4},
	{linux.SYS_PTRACE, "ptrace", "iipp", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_REBOOT, "reboot", "iiip", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_SETHOSTNAME, "sethostname", "pn", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_SETDOMAINNAME, "setdomainname", "pn", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_UNSHARE, "unshare", "i", Personality, Unaffected, "the call succeeds only without flags; with flags it returns EPERM", 0, unshare},
	{linux.SYS_SETNS, "setns", "fi", Personality, Unaffected, "for Go programs, every descriptor returns EINVAL; for Linux programs, the call succeeds for the namespaces of the caller and for mount namespaces", 0, setns},
	{linux.SYS_FSOPEN, "fsopen", "si", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_OPEN_TREE, "open_tree", "dsi", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_FANOTIFY_INIT, "fanotify_init", "ii", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_ACCT, "acct", "s", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_VHANGUP, "vhangup", "", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_SYSLOG, "syslog", "ipn", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_BPF, "bpf", "ipn", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_SWAPON, "swapon", "si", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_SWAPOFF, "swapoff", "s", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_CLOCK_SETTIME, "clock_settime", "ip", Personality, Unaffected, fixedTime, 0, clockSettime},
	{linux.SYS_SETTIMEOFDAY, "settimeofday", "pp", Personality, Unaffected, fixedTime, 0, settimeofday},
	{linux.SYS_PERSONALITY, "personality", "i", Personality, Unaffected, "the call succeeds only without flags; with flags it returns EINVAL", 0, personality},
	{linux.SYS_WAITID, "waitid", "iipip", Personality, Restarts, ofChildren, 0, waitid},
	{linux.SYS_IOPRIO_GET, "ioprio_get", "ii", Personality, Unaffected, ofOne, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.IOPriority(number(a.A1), int32(a.A2)))
	}},
	{linux.SYS_IOPRIO_SET, "ioprio_set", "iii", Personality, Unaffected, wishOnly, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.SetIOPriority(number(a.A1), int32(a.A2), number(a.A3)))
	}},
	{linux.SYS_SCHED_GETSCHEDULER, "sched_getscheduler", "i", Personality, Unaffected, ofOne, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.Scheduler(int32(a.A1)))
	}},
	{linux.SYS_SCHED_SETSCHEDULER, "sched_setscheduler", "iip", Personality, Unaffected, wishOnly, 0, schedSetscheduler},
	{linux.SYS_SCHED_GETPARAM, "sched_getparam", "ip", Personality, Unaffected, ofOne, 0, schedGetparam},
	{linux.SYS_SCHED_SETPARAM, "sched_setparam", "ip", Personality, Unaffected, wishOnly, 0, schedSetparam},
	{linux.SYS_SCHED_GET_PRIORITY_MAX, "sched_get_priority_max", "i", Personality, Unaffected, "", 0, schedPriority(true)},
	{linux.SYS_SCHED_GET_PRIORITY_MIN, "sched_get_priority_min", "i", Personality, Unaffected, "", 0, schedPriority(false)},
	{linux.SYS_SCHED_RR_GET_INTERVAL, "sched_rr_get_interval", "ip", Personality, Unaffected, ofOne, 0, schedRRGetInterval},
	{linux.SYS_SCHED_GETATTR, "sched_getattr", "ipni", Personality, Unaffected, ofOne, 0, schedGetattr},
	{linux.SYS_PIDFD_OPEN, "pidfd_open", "ii", Personality, Unaffected, onlyItself, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.PidFDOpen(int32(a.A1), unsigned(a.A2)))
	}},
	{linux.SYS_PIDFD_SEND_SIGNAL, "pidfd_send_signal", "fipi", Personality, Unaffected, "the caller's siginfo is not delivered", 0, pidfdSendSignal},
	{linux.SYS_PIDFD_GETFD, "pidfd_getfd", "ffi", Personality, Unaffected, onlyItself, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.PidFDGet(fd(a.A1), fd(a.A2), number(a.A3)))
	}},
	{linux.SYS_SCHED_YIELD, "sched_yield", "", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_SCHED_GETAFFINITY, "sched_getaffinity", "inp", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_SCHED_SETAFFINITY, "sched_setaffinity", "inp", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETTID, "gettid", "", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_GETCPU, "getcpu", "ppp", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_ARCH_PRCTL, "arch_prctl", "io", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_MEMBARRIER, "membarrier", "iii", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_EXIT, "exit", "i", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_EXIT_GROUP, "exit_group", "i", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_CLONE, "clone", "ippp", Runtime | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_FORK, "fork", "", AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_VFORK, "vfork", "", AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_RESTART_SYSCALL, "restart_syscall", "", Runtime, Unaffected, "", 0, nil},
	{linux.SYS_RT_SIGACTION, "rt_sigaction", "ippn", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_RT_SIGPROCMASK, "rt_sigprocmask", "ippn", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_RT_SIGRETURN, "rt_sigreturn", "", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_RT_SIGPENDING, "rt_sigpending", "pn", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_RT_SIGQUEUEINFO, "rt_sigqueueinfo", "iip", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_SIGALTSTACK, "sigaltstack", "pp", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_TIMER_CREATE, "timer_create", "ipp", Host | Personality | Runtime | Core, Unaffected, timersOfVM, 0, timerCreate},
	{linux.SYS_TIMER_SETTIME, "timer_settime", "iipp", Host | Personality | Runtime | Core, Unaffected, "", 0, timerSettime},
	{linux.SYS_TIMER_GETTIME, "timer_gettime", "ip", Host | Personality, Unaffected, "", 0, timerGettime},
	{linux.SYS_TIMER_GETOVERRUN, "timer_getoverrun", "i", Host | Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.Timers().Overrun(int32(a.A1)))
	}},
	{linux.SYS_TIMER_DELETE, "timer_delete", "i", Host | Personality | Runtime | Core, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Timers().Delete(int32(a.A1)))
	}},
	{linux.SYS_CLOCK_GETTIME, "clock_gettime", "ip", Host | Core | AtOnce, Unaffected, "", 0, nil},
	{linux.SYS_CLOCK_GETRES, "clock_getres", "ip", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETTIMEOFDAY, "gettimeofday", "pp", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_TIME, "time", "p", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_TIMES, "times", "p", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETITIMER, "getitimer", "ip", Host | Personality, Unaffected, "", 0, getitimer},
	{linux.SYS_SETITIMER, "setitimer", "ipp", Host | Personality | Core, Unaffected, "", 0, setitimer},
	{linux.SYS_ALARM, "alarm", "i", Host | Personality, Unaffected, "", 0, alarm},
	{linux.SYS_GETPID, "getpid", "", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETPPID, "getppid", "", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETPGID, "getpgid", "i", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETPGRP, "getpgrp", "", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETSID, "getsid", "i", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETUID, "getuid", "", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETEUID, "geteuid", "", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETGID, "getgid", "", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETEGID, "getegid", "", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETGROUPS, "getgroups", "np", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETRESUID, "getresuid", "ppp", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETRESGID, "getresgid", "ppp", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETRUSAGE, "getrusage", "ip", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETPRIORITY, "getpriority", "ii", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_SYSINFO, "sysinfo", "p", Host | Core, Unaffected, "", 0, nil},
	{linux.SYS_GETRANDOM, "getrandom", "pni", Host | Core, Fails, "", 0, nil},
}
