package posix

import "syscall"

// HostCalls are the system calls that Loam leaves to what it stands on: Linux, or
// in a virtual machine package kernel. None of them takes a path or a
// descriptor. Beside these, a program makes the calls of the Go runtime's own,
// which never come by package syscall, and Loam those about the descriptors that
// it was given: its links, the standard streams, the archives of its files
// (unikernel/rt/host.go).
var HostCalls = []uintptr{
	// Memory. What a file can be mapped to comes by Table (mmap, munmap, mprotect, madvise,
	// mremap, msync), and leads here where there is no file.
	syscall.SYS_MINCORE, syscall.SYS_MLOCK, syscall.SYS_MUNLOCK, syscall.SYS_MLOCKALL, syscall.SYS_MUNLOCKALL,

	// Threads.
	syscall.SYS_FUTEX, syscall.SYS_SCHED_YIELD, syscall.SYS_SCHED_GETAFFINITY, syscall.SYS_SCHED_SETAFFINITY,
	syscall.SYS_GETTID, sysGetcpu, syscall.SYS_ARCH_PRCTL, sysMembarrier,
	syscall.SYS_EXIT, syscall.SYS_EXIT_GROUP,

	// Signals. kill and tgkill come by Table.
	syscall.SYS_RT_SIGACTION, syscall.SYS_RT_SIGPROCMASK, syscall.SYS_RT_SIGRETURN, syscall.SYS_SIGALTSTACK,
	syscall.SYS_RT_SIGTIMEDWAIT, syscall.SYS_PAUSE,

	// Time.
	syscall.SYS_NANOSLEEP, syscall.SYS_CLOCK_GETTIME, syscall.SYS_CLOCK_GETRES, syscall.SYS_CLOCK_NANOSLEEP,
	syscall.SYS_GETTIMEOFDAY, syscall.SYS_TIME, syscall.SYS_TIMES, syscall.SYS_GETITIMER, syscall.SYS_SETITIMER,
	syscall.SYS_ALARM,

	// Who the program is, and what it may use. Limits come by Table.
	syscall.SYS_GETPID, syscall.SYS_GETPPID, syscall.SYS_GETPGID, syscall.SYS_GETPGRP, syscall.SYS_GETSID,
	syscall.SYS_GETUID, syscall.SYS_GETEUID, syscall.SYS_GETGID, syscall.SYS_GETEGID, syscall.SYS_GETGROUPS,
	syscall.SYS_GETRESUID, syscall.SYS_GETRESGID, syscall.SYS_GETRUSAGE,
	syscall.SYS_GETPRIORITY, syscall.SYS_SYSINFO, sysGetrandom,
}

// Numbers that package syscall lacks.
const (
	sysGetcpu     = 309
	sysGetrandom  = 318
	sysMembarrier = 324
)
