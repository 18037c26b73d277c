package call

import "slices"

// Table lists the system calls that exist. They are served by package posix, by Linux or by package kernel: see Who. Any
// other number returns ENOSYS. A row for package posix without a function returns Row.Errno.
var Table = slices.Concat(filesRows, pathsRows, socketsRows, waitingRows, processRows)

// Restrictions of calls that are implemented in part: the texts of Row.Missing.
const (
	noSignalMask  = "in a Go program, signals do not interrupt the call, and the signal mask is ignored"
	noDirect      = "leases have no effect, and O_DIRECT has none on files in memory"
	fewIoctls     = "supported: FIONREAD, FIONBIO, FIOASYNC, FIOSETOWN, FIOGETOWN, FIOCLEX, FIONCLEX, SIOCOUTQ, SIOCATMARK, EXT4_IOC_RESIZE_FS, BLKGETSIZE64, BLKGETSIZE, BLKBSZGET, BLKSSZGET, BLKPBSZGET, BLKROGET, requests of ioctl_tty(2) (for a terminal of the host only settings and size; TIOCSTI returns EIO), and requests of netdevice(7) that read properties of an interface; others return ENOTTY"
	fewControls   = "supported control messages: SCM_RIGHTS, SCM_CREDENTIALS, IP_PKTINFO, IP_TTL, IP_TOS, IP_ORIGDSTADDR and their IPv6 equivalents, SO_TIMESTAMP, SO_TIMESTAMPNS, PACKET_AUXDATA; MSG_OOB only on TCP; MSG_ERRQUEUE only on datagram sockets"
	fewSockets    = "supported: AF_INET and AF_INET6 (TCP, UDP, ping, raw), AF_UNIX, AF_NETLINK (route), AF_PACKET; others return EAFNOSUPPORT"
	fewOptions    = "supported: the options in posix/socket/socket.go, in posix/packet/option.go, and in tcpoption.go, udpoption.go, rawsocket.go and sourcefilter.go of posix/inet; others return ENOPROTOOPT"
	filesOfTree   = "only files of the tree; pipes and sockets return EBADF"
	fewFcntls     = "supported: F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, locks, seals, F_GETPIPE_SZ, F_SETPIPE_SZ, F_SETOWN, F_SETOWN_EX and F_SETSIG (SIGIO only for Linux programs in ring 3), F_NOTIFY with no events; others return EINVAL"
	onlyGrows     = "for files in memory, the call reserves no space"
	fromTree      = "the source must be a file of a file system; for other sources the call returns EINVAL, and programs then use read and write"
	mapsOfFile    = "a private mapping of a file is a copy; all shared mappings of a file have the same address and the rights of the file, and MAP_FIXED is not supported for them"
	notOfShared   = "the call has no effect on shared mappings of files"
	oneOfShared   = "a shared mapping of a file can be moved only if it is the only one of that file"
	noCores       = "RLIMIT_CORE is only stored, because programs on Loam do not dump core"
	onlyItself    = "works only for the program itself, its threads, and in a virtual machine the processes that it starts; other processes return ESRCH"
	ofChildren    = "in a virtual machine, waits for processes that the program has started by os/exec; a program has no other children"
	bySpawn       = "in a virtual machine, os/exec, os.StartProcess and syscall.ForkExec start programs without this call"
	newestName    = "if a file has several names, its events have the newest name; writes through a mapping cause no event"
	ofClocks      = "supported: CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME; the clocks that wake a suspended machine return EPERM"
	fewMemfds     = "no huge pages, and no flags added in Linux 6.3; F_SEAL_WRITE returns EBUSY while any shared mapping of the file exists"
	ofOne         = "works only for the program itself; other processes return ESRCH"
	wishOnly      = "the value is checked and stored, but has no effect; real-time classes return EPERM"
	timersOfVM    = "in a virtual machine, timers on a thread's CPU clock return EOPNOTSUPP, and the siginfo of a timer's signal looks as if it came from kill(2)"
	ownID         = "succeeds only if the ID does not change; other IDs return EPERM, as for an unprivileged user on Linux"
	fewPrctls     = "supported: names of threads and memory, PR_SET_KEEPCAPS, dumpable, no_new_privs, PR_SET_PDEATHSIG, PR_CAPBSET_READ, subreaper, timer slack, PR_SET_THP_DISABLE, PR_GET_SECUREBITS, PR_GET_TSC; others return EINVAL"
	noCancel      = "TFD_TIMER_CANCEL_ON_SET has no effect; after the wall clock is set forward, timers may expire late"
	noMqueueFiles = "queues are not shown as files, because /dev/mqueue cannot be mounted"
	boundedWalk   = noDirect + "; with RESOLVE_* flags, a link in /proc to a descriptor is resolved by its text and not to the open file, and a FIFO returns ENXIO"
	userXattrs    = "only attributes with names user.* and trusted.* are supported, but not on pipes and sockets; security.* returns EPERM or ENODATA, as for an unprivileged user, and other names return EOPNOTSUPP"
	readOnlyTime  = "reports a clock that was never synchronized; a request to change the clock returns EPERM"
	noFlags       = "the flags RWF_HIPRI, RWF_DSYNC, RWF_SYNC and RWF_NOWAIT have no effect; other flags return EOPNOTSUPP"
)
