package linux

// Further flags of clone(2) and clone3(2), resources, scheduling policies, and operations of prctl(2).
//
// headers: sched.h linux/sched.h sys/prctl.h sys/resource.h sys/time.h
const (
	CLONE_CLEAR_SIGHAND = 0x100000000
	CLONE_DETACHED      = 0x400000
	CLONE_INTO_CGROUP   = 0x200000000
	CLONE_IO            = 0x80000000
	CLONE_NEWCGROUP     = 0x2000000
	CLONE_NEWIPC        = 0x8000000
	CLONE_NEWNET        = 0x40000000
	CLONE_NEWNS         = 0x20000
	CLONE_NEWPID        = 0x20000000
	CLONE_NEWTIME       = 0x80
	CLONE_NEWUTS        = 0x4000000
	CLONE_PARENT        = 0x8000
	CLONE_PIDFD         = 0x1000
	CLONE_PTRACE        = 0x2000
	CLONE_UNTRACED      = 0x800000

	PR_CAPBSET_DROP          = 24
	PR_CAP_AMBIENT           = 47
	PR_CAP_AMBIENT_CLEAR_ALL = 4
	PR_CAP_AMBIENT_IS_SET    = 1
	PR_CAP_AMBIENT_LOWER     = 3
	PR_CAP_AMBIENT_RAISE     = 2
	PR_GET_PDEATHSIG         = 2
	PR_GET_TID_ADDRESS       = 40
	PR_SET_SECUREBITS        = 28

	RLIMIT_CPU        = 0
	RLIMIT_MSGQUEUE   = 12
	RLIMIT_NICE       = 13
	RLIMIT_NPROC      = 6
	RLIMIT_RSS        = 5
	RLIMIT_RTPRIO     = 14
	RLIMIT_RTTIME     = 15
	RLIMIT_SIGPENDING = 11

	RUSAGE_THREAD = 1

	SCHED_BATCH         = 3
	SCHED_DEADLINE      = 6
	SCHED_FIFO          = 1
	SCHED_IDLE          = 5
	SCHED_OTHER         = 0
	SCHED_RESET_ON_FORK = 0x40000000
	SCHED_RR            = 2
)

// Capabilities (capabilities(7)), as numbers of bits.
//
// headers: linux/capability.h
const (
	CAP_AUDIT_CONTROL    = 30
	CAP_AUDIT_WRITE      = 29
	CAP_CHOWN            = 0
	CAP_DAC_OVERRIDE     = 1
	CAP_DAC_READ_SEARCH  = 2
	CAP_FOWNER           = 3
	CAP_FSETID           = 4
	CAP_IPC_LOCK         = 14
	CAP_IPC_OWNER        = 15
	CAP_KILL             = 5
	CAP_LAST_CAP         = 40
	CAP_LEASE            = 28
	CAP_LINUX_IMMUTABLE  = 9
	CAP_MAC_OVERRIDE     = 32
	CAP_MKNOD            = 27
	CAP_NET_ADMIN        = 12
	CAP_NET_BIND_SERVICE = 10
	CAP_NET_RAW          = 13
	CAP_SETFCAP          = 31
	CAP_SETGID           = 6
	CAP_SETPCAP          = 8
	CAP_SETUID           = 7
	CAP_SYS_ADMIN        = 21
	CAP_SYS_CHROOT       = 18
	CAP_SYS_NICE         = 23
	CAP_SYS_PTRACE       = 19
	CAP_SYS_RESOURCE     = 24
	CAP_SYS_TTY_CONFIG   = 26
)

// Versions and flags of the capabilities of a program file.
//
// headers: linux/capability.h
const (
	VFS_CAP_FLAGS_EFFECTIVE = 1
	VFS_CAP_REVISION_2      = 0x02000000
	VFS_CAP_REVISION_3      = 0x03000000
)

// Signals for user programs (SIGUSR1, SIGUSR2), I/O, exceeded resource limits, and timers of CPU time.
//
// headers: signal.h
const (
	SIGIO   = 29
	SIGUSR1 = 10
	SIGXCPU = 24
	SIGXFSZ = 25
)

// Requests of ioctl(2) on the signals of a file: whether I/O sends SIGIO, and to which process.
//
// headers: sys/ioctl.h asm/sockios.h
const (
	FIOASYNC  = 0x5452
	FIOGETOWN = 0x8903
	FIOSETOWN = 0x8901
	SIOCGPGRP = 0x8904
	SIOCSPGRP = 0x8902
)
