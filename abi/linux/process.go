package linux

// Numbers of calls about processes, threads, signals and clocks.
//
// headers: sched.h signal.h time.h sys/timex.h sys/prctl.h sys/resource.h asm/prctl.h linux/capability.h linux/audit.h linux/futex.h sys/time.h linux/prctl.h
const (
	ADJ_OFFSET            = 1
	ADJ_OFFSET_SINGLESHOT = 0x8001
	ADJ_OFFSET_SS_READ    = 0xa001
	ARCH_GET_CPUID        = 0x1011
	ARCH_GET_FS           = 0x1003
	ARCH_GET_GS           = 0x1004
	ARCH_SET_CPUID        = 0x1012
	ARCH_SET_FS           = 0x1002
	ARCH_SET_GS           = 0x1001
	AUDIT_ARCH_X86_64     = 0xc000003e

	CLOCK_BOOTTIME           = 7
	CLOCK_BOOTTIME_ALARM     = 9
	CLOCK_MONOTONIC          = 1
	CLOCK_MONOTONIC_COARSE   = 6
	CLOCK_MONOTONIC_RAW      = 4
	CLOCK_PROCESS_CPUTIME_ID = 2
	CLOCK_REALTIME           = 0
	CLOCK_REALTIME_ALARM     = 8
	CLOCK_REALTIME_COARSE    = 5
	CLOCK_TAI                = 11
	CLOCK_THREAD_CPUTIME_ID  = 3

	CLONE_CHILD_CLEARTID = 0x200000
	CLONE_CHILD_SETTID   = 0x1000000
	CLONE_FILES          = 0x400
	CLONE_FS             = 0x200
	CLONE_NEWUSER        = 0x10000000
	CLONE_PARENT_SETTID  = 0x100000
	CLONE_SETTLS         = 0x80000
	CLONE_SIGHAND        = 0x800
	CLONE_SYSVSEM        = 0x40000
	CLONE_THREAD         = 0x10000
	CLONE_VFORK          = 0x4000
	CLONE_VM             = 0x100

	FUTEX_CLOCK_REALTIME  = 0x100
	FUTEX_CMP_REQUEUE     = 4
	FUTEX_CMP_REQUEUE_PI  = 12
	FUTEX_LOCK_PI         = 6
	FUTEX_LOCK_PI2        = 13
	FUTEX_PRIVATE_FLAG    = 0x80
	FUTEX_REQUEUE         = 3
	FUTEX_TRYLOCK_PI      = 8
	FUTEX_UNLOCK_PI       = 7
	FUTEX_WAIT            = 0
	FUTEX_WAIT_BITSET     = 9
	FUTEX_WAIT_REQUEUE_PI = 11
	FUTEX_WAKE            = 1
	FUTEX_WAKE_BITSET     = 10
	FUTEX_WAKE_OP         = 5
	ITIMER_REAL           = 0
	ITIMER_VIRTUAL        = 1
	ITIMER_PROF           = 2

	PRIO_PGRP    = 1
	PRIO_PROCESS = 0
	PRIO_USER    = 2

	PR_CAPBSET_READ        = 23
	PR_GET_DUMPABLE        = 3
	PR_GET_KEEPCAPS        = 7
	PR_GET_CHILD_SUBREAPER = 37
	PR_GET_SECUREBITS      = 27
	PR_GET_THP_DISABLE     = 42
	PR_GET_TIMERSLACK      = 30
	PR_GET_TSC             = 25
	PR_SET_MDWE            = 65
	PR_GET_MDWE            = 66
	PR_SET_CHILD_SUBREAPER = 36
	PR_SET_THP_DISABLE     = 41
	PR_SET_TIMERSLACK      = 29
	PR_TSC_ENABLE          = 1
	PR_GET_NAME            = 0x10
	PR_GET_NO_NEW_PRIVS    = 39
	PR_SET_DUMPABLE        = 4
	PR_SET_KEEPCAPS        = 8
	PR_SET_NAME            = 15
	PR_SET_NO_NEW_PRIVS    = 38
	PR_SET_PDEATHSIG       = 1
	PR_SET_VMA             = 0x53564d41

	RLIMIT_AS            = 9
	RLIMIT_CORE          = 4
	RLIMIT_DATA          = 2
	RLIMIT_FSIZE         = 1
	RLIMIT_MEMLOCK       = 8
	RLIMIT_NOFILE        = 7
	RLIMIT_STACK         = 3
	RLIM_NLIMITS         = 0x10
	RUSAGE_CHILDREN      = -1
	RUSAGE_SELF          = 0
	STA_UNSYNC           = 0x40
	TIMER_ABSTIME        = 1
	TIME_ERROR           = 5
	CAPABILITY_VERSION_3 = 0x20080522 // _LINUX_CAPABILITY_VERSION_3
)

// Kinds of objects that kcmp(2) compares.
//
// headers: linux/kcmp.h
const (
	KCMP_FILE    = 0
	KCMP_FILES   = 2
	KCMP_FS      = 3
	KCMP_IO      = 5
	KCMP_SIGHAND = 4
	KCMP_SYSVSEM = 6
	KCMP_VM      = 1
)

// Options of wait4(2) and waitid(2), and kinds of IDs of waitid(2).
//
// headers: sys/wait.h
const (
	P_ALL      = 0
	P_PGID     = 2
	P_PID      = 1
	P_PIDFD    = 3
	WCONTINUED = 8
	WEXITED    = 4
	WNOHANG    = 1
	WNOWAIT    = 0x1000000
	WSTOPPED   = 2
	WUNTRACED  = 2
)
