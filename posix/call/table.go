package call

import "slices"

// Table lists the system calls that exist. They are served by package posix, by Linux or by package kernel: see Who. Any
// other number returns ENOSYS. A row for package posix without a function returns Row.Errno.
var Table = slices.Concat(filesRows, pathsRows, socketsRows, waitingRows, processRows)

// Restrictions of calls that are implemented in part: the texts of Row.Missing.
const (
	noSignalMask  = "in a Go program, signals do not interrupt the call, and the signal mask is ignored"
	noDirect      = "O_DIRECT has no effect on files in memory"
	fewIoctls     = "supported requests: FIONREAD, FIONBIO, FIOASYNC, FIOSETOWN, FIOGETOWN, FIOCLEX, FIONCLEX, SIOCOUTQ, SIOCATMARK, EXT4_IOC_RESIZE_FS, BLKGETSIZE64, BLKGETSIZE, BLKBSZGET, BLKSSZGET, BLKPBSZGET, BLKROGET, RNDGETENTCNT, PROCMAP_QUERY (for processes in ring 3), requests of ioctl_tty(2) (for a terminal of the host only settings and size; TIOCSTI returns EIO), and requests of netdevice(7) that read properties of an interface; FICLONE and FICLONERANGE return EOPNOTSUPP, other requests ENOTTY"
	fewControls   = "supported control messages: SCM_RIGHTS, SCM_CREDENTIALS, SCM_PIDFD (of processes in ring 3), IP_PKTINFO, IP_TTL, IP_TOS, IP_ORIGDSTADDR and their IPv6 equivalents, SO_TIMESTAMP, SO_TIMESTAMPNS, PACKET_AUXDATA; MSG_OOB only on TCP; MSG_ERRQUEUE only on datagram sockets"
	fewSockets    = "supported address families: AF_INET and AF_INET6 (TCP, UDP, ping, raw), AF_UNIX, AF_NETLINK (route and sock_diag), AF_PACKET; other families return EAFNOSUPPORT"
	fewOptions    = "supported options: the options in posix/socket/socket.go, in posix/packet/option.go, and in tcpoption.go, udpoption.go, rawsocket.go and sourcefilter.go of posix/inet; other options return ENOPROTOOPT"
	filesOfTree   = "only files of the file tree; other files, such as pipes and sockets, return EBADF"
	fewFcntls     = "supported commands: F_DUPFD, F_DUPFD_CLOEXEC, F_DUPFD_QUERY, F_CREATED_QUERY, F_GETFD, F_SETFD, F_GETFL, F_SETFL, locks, seals, F_GETPIPE_SZ, F_SETPIPE_SZ, F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE and F_GETLEASE (their signals only for Linux programs in ring 3), F_NOTIFY with no events; other commands return EINVAL"
	onlyGrows     = "for files in memory, the call reserves no space"
	fromTree      = "the source must be a file of a file system; for other sources the call returns EINVAL, and programs then use read and write"
	mapsOfFile    = "a private mapping of a file is a copy; all shared mappings of a file have the same address and the rights of the file, and MAP_FIXED is not supported for them"
	notOfShared   = "the call has no effect on shared mappings of files"
	oneOfShared   = "a shared mapping of a file can be moved only if the file has no other shared mapping"
	noCores       = "RLIMIT_CORE is only stored, because Go programs on Loam do not dump core"
	onlyItself    = "the call works only for the program itself, its threads, and in a virtual machine the processes that it starts; for other processes it returns ESRCH"
	ofChildren    = "in a virtual machine, the call waits for processes that the program has started by os/exec; a program has no other children"
	bySpawn       = "in a virtual machine, os/exec, os.StartProcess and syscall.ForkExec start programs without this call"
	newestName    = "if a file has several names, its events contain the newest name; writes through a mapping cause no event"
	ofClocks      = "supported clocks: CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME; the clocks that wake a suspended machine return EPERM"
	fewMemfds     = "huge pages, and the flags that were added in Linux 6.3, are not supported"
	ofOne         = "the call works only for the program itself; for other processes it returns ESRCH"
	wishOnly      = "the value is checked and stored, but has no effect; real-time classes return EPERM"
	timersOfVM    = "for a Go program in a virtual machine, timers on a thread's CPU clock return EOPNOTSUPP, and the siginfo of a timer's signal looks as if it came from kill(2)"
	ownID         = "the call succeeds only if the ID does not change; for another ID it returns EPERM, as for an unprivileged user on Linux"
	fewPrctls     = "supported operations: names of threads and memory, PR_SET_KEEPCAPS, dumpable, no_new_privs, PR_SET_PDEATHSIG, PR_CAPBSET_READ, subreaper, timer slack, PR_SET_THP_DISABLE, PR_SET_MDWE, PR_GET_SECUREBITS, PR_GET_TSC; other operations return EINVAL"
	noCancel      = "TFD_TIMER_CANCEL_ON_SET has no effect; after the wall clock is set forward, timers may expire late"
	noMqueueFiles = "queues are not shown as files, because /dev/mqueue cannot be mounted"
	boundedWalk   = noDirect + "; with RESOLVE_* flags, a link in /proc that names a descriptor is resolved as a path and does not lead to the open file, and opening a FIFO returns ENXIO"
	userXattrs    = "only attributes with names user.*, trusted.* and security.*, and access control lists are supported, but not on pipes and sockets; other names return EOPNOTSUPP"
	fixedTime     = "valid arguments return EPERM: the clock cannot be set"
	readOnlyTime  = "the call reports that the clock was never synchronized; a request to change the clock returns EPERM"
	noFlags       = "the flags RWF_HIPRI and RWF_NOWAIT have no effect; other flags return EOPNOTSUPP, except RWF_DSYNC and RWF_SYNC of pwritev2"
)
