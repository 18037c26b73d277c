package main

import (
	"os"
	"syscall"
)

// More numbers that package syscall lacks.
const (
	sysMqOpen        = 240
	sysMqUnlink      = 241
	sysMqTimedsend   = 242
	sysMqTimedrecv   = 243
	sysMqNotify      = 244
	sysMqGetsetattr  = 245
	sysEpollPwait    = 281
	sysClockAdjtime  = 305
	sysSyncfs        = 306
	sysSetns         = 308
	sysGetcpu        = 309
	sysSchedGetattr  = 315
	sysGetrandom     = 318
	sysMembarrier    = 324
	sysMlock2        = 325
	sysPreadv2       = 327
	sysPwritev2      = 328
	sysPidfdSend     = 424
	sysPidfdOpen     = 434
	sysPidfdGetfd    = 438
	sysEpollPwait2   = 441
	sysFchmodat2     = 452
	userClock        = 99 // no clock has this number
	noSignal         = 99
	noTimer          = 99
	waitAny, noHang  = 0, 4 | 1 // waitid(2): P_ALL, WEXITED|WNOHANG
	capabilities     = 0x20080522
	futexWait, noOp  = 0, 99
	mappedNowhere    = nowhere &^ 0xfff
	signalSetSize    = 8
	moduleOfMessages = "/errno-none"
)

// fileCalls are calls about files and names in addition to calls.
func fileCalls(f files) []call {
	buf := at([512]byte{})
	target := at([64]byte{})
	iov := at([1]syscall.Iovec{{Base: (*byte)(pointer(target.value)), Len: 16}})
	timespec := fixed(at(syscall.Timespec{}))
	return []call{
		{"fdatasync", syscall.SYS_FDATASYNC, []arg{fd(f.file)}},
		{"fchown", syscall.SYS_FCHOWN, []arg{fd(f.file), n(-1), n(-1)}},
		{"fadvise64", syscall.SYS_FADVISE64, []arg{fd(f.file), n(0), cn(0), cn(0)}},
		{"readahead", syscall.SYS_READAHEAD, []arg{fd(f.file), n(0), n(16)}},
		{"splice", syscall.SYS_SPLICE, []arg{fd(f.pipe[0]), n(0), fd(f.file), n(0), n(1), n(0)}},
		{"splice with flags", syscall.SYS_SPLICE, []arg{n(f.pipe[0]), n(0), n(f.file), n(0), n(1), n(1 << 20)}},
		{"splice of nothing", syscall.SYS_SPLICE, []arg{n(f.pipe[0]), n(0), n(f.file), n(0), n(0), n(0)}},
		{"tee", syscall.SYS_TEE, []arg{fd(f.pipe[0]), fd(f.pipe[1]), n(1), n(0)}},
		{"vmsplice with flags", syscall.SYS_VMSPLICE, []arg{n(f.pipe[1]), iov, n(1), n(1 << 20)}},
		{"sync_file_range", syscall.SYS_SYNC_FILE_RANGE, []arg{fd(f.file), cn(0), cn(0), cn(0)}},
		{"sync_file_range before the file", syscall.SYS_SYNC_FILE_RANGE, []arg{n(f.file), n(-1), n(0), n(0)}},
		{"preadv2", sysPreadv2, []arg{fd(f.file), iov, n(1), n(0), n(0), cn(0)}},
		{"preadv2 of too many", sysPreadv2, []arg{n(f.file), iov, n(1025), n(0), n(0), n(0)}},
		{"pwritev2", sysPwritev2, []arg{fd(f.file), iov, n(1), n(0), n(0), cn(0)}},
		{"syncfs of what is not open", sysSyncfs, []arg{n(999)}},
		{"lstat", syscall.SYS_LSTAT, []arg{path("file"), buf}},
		{"faccessat", syscall.SYS_FACCESSAT, []arg{fd(f.dir), path("file"), cn(0)}},
		{"chroot into a file", syscall.SYS_CHROOT, []arg{path("file")}},
		{"renameat", syscall.SYS_RENAMEAT, []arg{fd(f.dir), path("file"), n(f.dir), path("file")}},
		{"mkdir", syscall.SYS_MKDIR, []arg{path("file"), n(0)}},
		{"mkdir of nothing", syscall.SYS_MKDIR, []arg{path(""), n(0)}},
		{"unlink", syscall.SYS_UNLINK, []arg{path("nothing")}},
		{"unlink of a folder", syscall.SYS_UNLINK, []arg{path(".")}},
		{"link", syscall.SYS_LINK, []arg{path("nothing"), fixed(path("new"))}},
		{"link to what is there", syscall.SYS_LINK, []arg{path("file"), path("file")}},
		{"symlink", syscall.SYS_SYMLINK, []arg{path("text"), path("file")}},
		{"symlink of nothing", syscall.SYS_SYMLINK, []arg{path(""), path("new")}},
		{"chmod", syscall.SYS_CHMOD, []arg{path("file"), n(0o600)}},
		{"fchmodat2", sysFchmodat2, []arg{fd(f.dir), path("file"), n(0o600), cn(0)}},
		{"chown", syscall.SYS_CHOWN, []arg{path("file"), n(-1), n(-1)}},
		{"lchown", syscall.SYS_LCHOWN, []arg{path("file"), n(-1), n(-1)}},
		{"mknod", syscall.SYS_MKNOD, []arg{path("file"), n(syscall.S_IFREG), n(0)}},
		{"mknod of no kind", syscall.SYS_MKNOD, []arg{path("new"), n(0o170000), n(0)}},
		{"mknodat", syscall.SYS_MKNODAT, []arg{fd(f.dir), path("file"), n(syscall.S_IFIFO), n(0)}},
		{"futimesat", syscall.SYS_FUTIMESAT, []arg{fd(f.dir), path("file"), at([2]syscall.Timeval{})}},
		{"futimesat at no time", syscall.SYS_FUTIMESAT, []arg{n(here), path("file"), at([2]syscall.Timeval{{Usec: 1e6}})}},
		{"setxattr with flags", syscall.SYS_SETXATTR, []arg{path("file"), path("user.x"), buf, n(1), n(8)}},
		{"lsetxattr with flags", syscall.SYS_LSETXATTR, []arg{path("file"), path("user.x"), buf, n(1), n(8)}},
		{"lgetxattr", syscall.SYS_LGETXATTR, []arg{path("file"), path("user.none"), buf, n(16)}},
		{"listxattr", syscall.SYS_LISTXATTR, []arg{path("file"), buf, n(512)}},
		{"llistxattr", syscall.SYS_LLISTXATTR, []arg{path("file"), buf, n(512)}},
		{"flistxattr", syscall.SYS_FLISTXATTR, []arg{fd(f.file), buf, n(512)}},
		{"removexattr", syscall.SYS_REMOVEXATTR, []arg{path("file"), path("user.none")}},
		{"lremovexattr", syscall.SYS_LREMOVEXATTR, []arg{path("file"), path("user.none")}},
		{"fremovexattr", syscall.SYS_FREMOVEXATTR, []arg{fd(f.file), path("user.none")}},
		{"mq_open", sysMqOpen, []arg{path(moduleOfMessages), n(0), n(0), n(0)}},
		{"mq_open of nothing", sysMqOpen, []arg{path("/"), n(0), n(0), n(0)}},
		{"mq_unlink", sysMqUnlink, []arg{path(moduleOfMessages)}},
		{"mq_timedsend", sysMqTimedsend, []arg{fd(f.file), buf, n(16), n(0), n(0)}},
		{"mq_timedreceive", sysMqTimedrecv, []arg{fd(f.file), buf, n(16), n(0), n(0)}},
		{"mq_notify", sysMqNotify, []arg{fd(f.file), n(0)}},
		{"mq_getsetattr", sysMqGetsetattr, []arg{fd(f.file), n(0), buf}},
		{"epoll_pwait", sysEpollPwait, []arg{fd(f.epoll), fixed(buf), cn(4), n(0), n(0), n(8)}},
		{"epoll_pwait with a mask", sysEpollPwait, []arg{n(f.epoll), fixed(buf), n(4), n(0), at(uint64(0)), cn(8)}},
		{"epoll_pwait2", sysEpollPwait2, []arg{fd(f.epoll), fixed(buf), cn(4), timespec, n(0), n(8)}},
		{"epoll_pwait2 for no time", sysEpollPwait2, []arg{n(f.epoll), fixed(buf), n(4), fixed(at(syscall.Timespec{Nsec: 1e9})), n(0), n(8)}},
	}
}

// memoryCalls are calls about memory.
func memoryCalls() []call {
	buf := at([512]byte{})
	return []call{
		{"mprotect at no page", syscall.SYS_MPROTECT, []arg{n(5), n(4096), n(1)}},
		{"mprotect of nothing", syscall.SYS_MPROTECT, []arg{n(mappedNowhere), sz(4096), n(1)}},
		{"mprotect with rights", syscall.SYS_MPROTECT, []arg{n(mappedNowhere), n(4096), n(1 << 10)}},
		{"madvise at no page", syscall.SYS_MADVISE, []arg{n(5), n(4096), n(4)}},
		{"madvise of nothing", syscall.SYS_MADVISE, []arg{n(mappedNowhere), n(4096), n(4)}},
		{"madvise of no kind", syscall.SYS_MADVISE, []arg{n(mappedNowhere), n(4096), n(9999)}},
		{"mremap of nothing", syscall.SYS_MREMAP, []arg{n(mappedNowhere), n(4096), n(8192), n(0)}},
		{"mremap at no page", syscall.SYS_MREMAP, []arg{n(5), n(4096), n(8192), n(0)}},
		{"mremap with flags", syscall.SYS_MREMAP, []arg{n(mappedNowhere), n(4096), n(8192), n(1 << 10)}},
		{"msync of nothing", syscall.SYS_MSYNC, []arg{n(mappedNowhere), n(4096), n(4)}},
		{"msync at no page", syscall.SYS_MSYNC, []arg{n(5), n(4096), n(4)}},
		{"msync with flags", syscall.SYS_MSYNC, []arg{n(mappedNowhere), n(4096), n(1 << 10)}},
		{"msync two ways", syscall.SYS_MSYNC, []arg{n(mappedNowhere), n(4096), n(1 | 4)}},
		{"mincore at no page", syscall.SYS_MINCORE, []arg{n(5), n(4096), buf}},
		{"mincore of nothing", syscall.SYS_MINCORE, []arg{n(mappedNowhere), n(4096), buf}},
		{"mlock of nothing", syscall.SYS_MLOCK, []arg{n(mappedNowhere), n(4096)}},
		{"mlock2 with flags", sysMlock2, []arg{n(mappedNowhere), n(4096), n(2)}},
		{"munlock of nothing", syscall.SYS_MUNLOCK, []arg{n(mappedNowhere), n(4096)}},
		{"mlockall of no kind", syscall.SYS_MLOCKALL, []arg{n(0)}},
		{"mlockall with flags", syscall.SYS_MLOCKALL, []arg{n(1 << 10)}},
		{"getrandom", sysGetrandom, []arg{buf, n(16), n(0)}},
		{"getrandom with flags", sysGetrandom, []arg{buf, n(16), n(1 << 10)}},
	}
}

// processCalls are calls about processes, threads and their IDs.
func processCalls(f files) []call {
	buf, zero := at([512]byte{}), at([16]byte{})
	return []call{
		{"kill of no kind", syscall.SYS_KILL, []arg{n(os.Getpid()), n(noSignal)}},
		{"kill of nobody", syscall.SYS_KILL, []arg{n(1 << 30), n(0)}},
		{"tkill", syscall.SYS_TKILL, []arg{n(-1), n(0)}},
		{"tkill of nobody", syscall.SYS_TKILL, []arg{n(1 << 30), n(0)}},
		{"tgkill of nobody", syscall.SYS_TGKILL, []arg{n(os.Getpid()), n(1 << 30), n(0)}},
		{"rt_sigqueueinfo of nobody", syscall.SYS_RT_SIGQUEUEINFO, []arg{n(1 << 30), n(10), buf}},
		{"setuid of nobody", syscall.SYS_SETUID, []arg{n(-1)}},
		{"setgid of nobody", syscall.SYS_SETGID, []arg{n(-1)}},
		{"setreuid", syscall.SYS_SETREUID, []arg{n(-1), n(-1)}},
		{"setregid", syscall.SYS_SETREGID, []arg{n(-1), n(-1)}},
		{"setresuid", syscall.SYS_SETRESUID, []arg{n(-1), n(-1), n(-1)}},
		{"setresgid", syscall.SYS_SETRESGID, []arg{n(-1), n(-1), n(-1)}},
		{"setpgid of less than nobody", syscall.SYS_SETPGID, []arg{n(0), n(-1)}},
		{"setpgid of nobody", syscall.SYS_SETPGID, []arg{n(1 << 30), n(0)}},
		{"getpgid of nobody", syscall.SYS_GETPGID, []arg{n(1 << 30)}},
		{"getsid of nobody", syscall.SYS_GETSID, []arg{n(1 << 30)}},
		{"getgroups", syscall.SYS_GETGROUPS, []arg{cn(0), fixed(buf)}},
		{"getresuid", syscall.SYS_GETRESUID, []arg{buf, fixed(zero), fixed(zero)}},
		{"getresgid", syscall.SYS_GETRESGID, []arg{fixed(zero), fixed(zero), buf}},
		{"capset of no version", syscall.SYS_CAPSET, []arg{at([2]uint32{1, 0}), buf}},
		{"capset of another", syscall.SYS_CAPSET, []arg{at([2]uint32{capabilities, 1}), buf}},
		{"getpriority", syscall.SYS_GETPRIORITY, []arg{cn(0), n(0)}},
		{"getpriority of no kind", syscall.SYS_GETPRIORITY, []arg{n(9), n(0)}},
		{"setpriority of no kind", syscall.SYS_SETPRIORITY, []arg{n(9), n(0), n(0)}},
		{"setpriority of nobody", syscall.SYS_SETPRIORITY, []arg{n(0), n(1 << 30), n(0)}},
		{"setrlimit of no kind", syscall.SYS_SETRLIMIT, []arg{n(99), buf}},
		{"setrlimit", syscall.SYS_SETRLIMIT, []arg{n(4), at([2]uint64{1, 0})}},
		{"execve of what is not there", syscall.SYS_EXECVE, []arg{path("nothing"), n(0), n(0)}},
		{"execve of a folder", syscall.SYS_EXECVE, []arg{path("."), n(0), n(0)}},
		{"execve of a text", syscall.SYS_EXECVE, []arg{path("file"), n(0), n(0)}},
		{"wait4", syscall.SYS_WAIT4, []arg{n(-1), buf, n(1), n(0)}},
		{"wait4 with options", syscall.SYS_WAIT4, []arg{n(-1), buf, n(1 << 20), n(0)}},
		{"waitid", syscall.SYS_WAITID, []arg{cn(waitAny), n(0), buf, n(noHang), n(0)}},
		{"waitid of no kind", syscall.SYS_WAITID, []arg{n(9), n(0), buf, n(noHang), n(0)}},
		{"waitid for nothing", syscall.SYS_WAITID, []arg{n(waitAny), n(0), buf, n(0), n(0)}},
		{"waitid of a descriptor", syscall.SYS_WAITID, []arg{n(3), fd(f.file), fixed(buf), n(noHang), n(0)}},
		{"ptrace of nobody", syscall.SYS_PTRACE, []arg{n(9999), n(1 << 30), n(0), n(0)}},
		{"unshare of no kind", syscall.SYS_UNSHARE, []arg{n(1)}},
		{"setns", sysSetns, []arg{fd(f.file), n(0)}},
		{"pidfd_open", sysPidfdOpen, []arg{cn(-1), n(0)}},
		{"pidfd_open with flags", sysPidfdOpen, []arg{n(os.Getpid()), n(1)}},
		{"pidfd_open of nobody", sysPidfdOpen, []arg{n(1 << 30), n(0)}},
		{"pidfd_send_signal", sysPidfdSend, []arg{fd(f.file), n(0), n(0), n(0)}},
		{"pidfd_getfd", sysPidfdGetfd, []arg{fd(f.file), n(0), n(0)}},
		{"ioprio_get", syscall.SYS_IOPRIO_GET, []arg{cn(1), n(0)}},
		{"ioprio_set of no class", syscall.SYS_IOPRIO_SET, []arg{n(1), n(0), n(5 << 13)}},
		{"sched_getscheduler", syscall.SYS_SCHED_GETSCHEDULER, []arg{cn(0)}},
		{"sched_setscheduler of no kind", syscall.SYS_SCHED_SETSCHEDULER, []arg{cn(0), n(99), zero}},
		{"sched_setscheduler", syscall.SYS_SCHED_SETSCHEDULER, []arg{cn(0), n(0), zero}},
		{"sched_getparam", syscall.SYS_SCHED_GETPARAM, []arg{cn(0), buf}},
		{"sched_setparam", syscall.SYS_SCHED_SETPARAM, []arg{cn(0), zero}},
		{"sched_get_priority_max", syscall.SYS_SCHED_GET_PRIORITY_MAX, []arg{cn(0)}},
		{"sched_get_priority_min", syscall.SYS_SCHED_GET_PRIORITY_MIN, []arg{cn(0)}},
		{"sched_rr_get_interval", syscall.SYS_SCHED_RR_GET_INTERVAL, []arg{cn(0), buf}},
		{"sched_getattr", sysSchedGetattr, []arg{cn(0), buf, n(48), cn(0)}},
		{"sched_getattr into less", sysSchedGetattr, []arg{n(0), buf, n(8), n(0)}},
		{"sched_getaffinity", syscall.SYS_SCHED_GETAFFINITY, []arg{cn(0), n(512), buf}},
		{"sched_getaffinity of a part", syscall.SYS_SCHED_GETAFFINITY, []arg{n(0), n(7), buf}},
		{"getcpu", sysGetcpu, []arg{buf, zero, n(0)}},
		{"arch_prctl of no kind", syscall.SYS_ARCH_PRCTL, []arg{n(9999), n(0)}},
		{"membarrier of no kind", sysMembarrier, []arg{n(1 << 20), n(0)}},
		{"membarrier with flags", sysMembarrier, []arg{n(0), n(1 << 20)}},
		{"getrusage", syscall.SYS_GETRUSAGE, []arg{cn(0), buf}},
		{"getrusage of no kind", syscall.SYS_GETRUSAGE, []arg{n(9), buf}},
		{"sysinfo", syscall.SYS_SYSINFO, []arg{buf}},
	}
}

// timeCalls are calls about clocks, timers, signals and futexes.
func timeCalls() []call {
	buf, zero := at([512]byte{}), at([32]byte{})
	timespec, badTimespec := at(syscall.Timespec{}), at(syscall.Timespec{Nsec: 1e9})
	word := at(uint32(0))
	return []call{
		{"clock_gettime", syscall.SYS_CLOCK_GETTIME, []arg{cn(0), buf}},
		{"clock_gettime of no kind", syscall.SYS_CLOCK_GETTIME, []arg{n(userClock), buf}},
		{"clock_getres", syscall.SYS_CLOCK_GETRES, []arg{cn(0), buf}},
		{"clock_getres of no kind", syscall.SYS_CLOCK_GETRES, []arg{n(userClock), buf}},
		{"clock_adjtime", sysClockAdjtime, []arg{n(0), at([26]uint64{})}},
		{"clock_adjtime of no kind", sysClockAdjtime, []arg{n(userClock), at([26]uint64{})}},
		{"gettimeofday", syscall.SYS_GETTIMEOFDAY, []arg{buf, zero}},
		{"time", syscall.SYS_TIME, []arg{buf}},
		{"times", syscall.SYS_TIMES, []arg{buf}},
		{"nanosleep", syscall.SYS_NANOSLEEP, []arg{timespec, n(0)}},
		{"nanosleep for no time", syscall.SYS_NANOSLEEP, []arg{badTimespec, n(0)}},
		{"clock_nanosleep", syscall.SYS_CLOCK_NANOSLEEP, []arg{cn(0), n(0), timespec, n(0)}},
		{"clock_nanosleep of no kind", syscall.SYS_CLOCK_NANOSLEEP, []arg{n(userClock), n(0), timespec, n(0)}},
		{"clock_nanosleep for no time", syscall.SYS_CLOCK_NANOSLEEP, []arg{n(1), n(0), badTimespec, n(0)}},
		{"getitimer", syscall.SYS_GETITIMER, []arg{cn(0), buf}},
		{"getitimer of no kind", syscall.SYS_GETITIMER, []arg{n(9), buf}},
		{"setitimer", syscall.SYS_SETITIMER, []arg{n(0), fixed(zero), fixed(zero)}},
		{"setitimer of no kind", syscall.SYS_SETITIMER, []arg{n(9), zero, n(0)}},
		{"setitimer for no time", syscall.SYS_SETITIMER, []arg{n(0), at([4]uint64{0, 0, 0, 1e6}), n(0)}},
		{"timer_create of no kind", syscall.SYS_TIMER_CREATE, []arg{n(userClock), n(0), buf}},
		{"timer_settime", syscall.SYS_TIMER_SETTIME, []arg{n(noTimer), n(0), zero, n(0)}},
		{"timer_gettime", syscall.SYS_TIMER_GETTIME, []arg{n(noTimer), buf}},
		{"timer_getoverrun", syscall.SYS_TIMER_GETOVERRUN, []arg{n(noTimer)}},
		{"timer_delete", syscall.SYS_TIMER_DELETE, []arg{n(noTimer)}},
		{"rt_sigaction", syscall.SYS_RT_SIGACTION, []arg{cn(10), n(0), buf, n(signalSetSize)}},
		{"rt_sigaction of another size", syscall.SYS_RT_SIGACTION, []arg{n(10), n(0), buf, cn(4)}},
		{"rt_sigaction of no kind", syscall.SYS_RT_SIGACTION, []arg{n(65), n(0), buf, n(signalSetSize)}},
		{"rt_sigprocmask", syscall.SYS_RT_SIGPROCMASK, []arg{n(0), zero, n(0), n(signalSetSize)}},
		{"rt_sigprocmask of no kind", syscall.SYS_RT_SIGPROCMASK, []arg{n(9), zero, n(0), n(signalSetSize)}},
		{"rt_sigprocmask of another size", syscall.SYS_RT_SIGPROCMASK, []arg{n(0), zero, n(0), cn(4)}},
		{"rt_sigpending", syscall.SYS_RT_SIGPENDING, []arg{buf, n(signalSetSize)}},
		{"rt_sigpending of another size", syscall.SYS_RT_SIGPENDING, []arg{buf, n(9)}},
		{"rt_sigtimedwait", syscall.SYS_RT_SIGTIMEDWAIT, []arg{zero, n(0), fixed(timespec), n(signalSetSize)}},
		{"rt_sigtimedwait of another size", syscall.SYS_RT_SIGTIMEDWAIT, []arg{zero, n(0), fixed(timespec), cn(4)}},
		{"rt_sigtimedwait for no time", syscall.SYS_RT_SIGTIMEDWAIT, []arg{zero, n(0), fixed(badTimespec), n(signalSetSize)}},
		{"sigaltstack", syscall.SYS_SIGALTSTACK, []arg{n(0), buf}},
		{"futex", syscall.SYS_FUTEX, []arg{word, n(futexWait), n(1), n(0), n(0), n(0)}},
		{"futex for no time", syscall.SYS_FUTEX, []arg{fixed(word), n(futexWait), n(1), fixed(badTimespec), n(0), n(0)}},
		{"futex at no word", syscall.SYS_FUTEX, []arg{n(int(word.value) + 1), n(futexWait), n(1), n(0), n(0), n(0)}},
		{"futex of no kind", syscall.SYS_FUTEX, []arg{fixed(word), n(noOp), n(1), n(0), n(0), n(0)}},
	}
}
