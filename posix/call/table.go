package call

import "slices"

// Table lists the system calls that exist, served by the personality, by Linux or by the core. Any
// other number returns ENOSYS. A row of the personality without a function returns the row's Errno.
var Table = slices.Concat(filesRows, pathsRows, socketsRows, waitingRows, processRows)

// Restrictions of calls that are incomplete.
const (
	noSignalMask = "signals do not interrupt it and the signal mask is ignored"
	noDirect     = "O_DIRECT, O_SYNC and leases mean nothing"
	fewIoctls    = "FIONREAD, FIONBIO, FIOASYNC without SIGIO, FIOCLEX, FIONCLEX, SIOCOUTQ and SIOCATMARK, those of ioctl_tty(2) (of a terminal of the host only settings and size; TIOCSTI is EIO), and those of netdevice(7) that tell of one interface; else ENOTTY"
	fewControls  = "control messages: SCM_RIGHTS, SCM_CREDENTIALS, IP_PKTINFO, IP_TTL, IP_TOS, IP_ORIGDSTADDR and their like of IPv6, SO_TIMESTAMP and SO_TIMESTAMPNS, PACKET_AUXDATA; MSG_OOB on TCP alone; MSG_ERRQUEUE on sockets for datagrams"
	fewSockets   = "AF_INET and AF_INET6 (TCP, UDP, ping, raw), AF_UNIX, AF_NETLINK (route), AF_PACKET; else EAFNOSUPPORT"
	fewOptions   = "those of socket.go, tcpoption.go, udpoption.go, rawsocket.go, sourcefilter.go, packetoption.go; else ENOPROTOOPT"
	fewFcntls    = "F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, locks, seals, F_GETPIPE_SZ, F_GETOWN and F_SETOWN without SIGIO; else EINVAL"
	onlyGrows    = "in memory, space is not set aside"
	fromTree     = "from a file of the tree; else EINVAL, upon which programs copy"
	mapsOfFile   = "of a file: a private mapping is a copy; shared ones of a file are at one address, not MAP_FIXED, with the rights of the file"
	notOfShared  = "nothing is done to shared mappings of files"
	oneOfShared  = "of shared mappings of a file, one is moved if it is the only one"
	noCores      = "limits are the kernel's to keep; that of core dumps is remembered, and there are none"
	onlyItself   = "of the program itself, or of threads of it; else ESRCH"
	newestName   = "a file of several names is told of by the newest; what is written to a mapping is not told"
	ofClocks     = "CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME; those that wake a machine are EPERM"
	fewMemfds    = "neither huge pages nor what came with Linux 6.3; SEAL_WRITE is EBUSY while the file is mapped shared at all"
	ofOne        = "of the program itself; else ESRCH"
	wishOnly     = "it is checked and remembered, and changes nothing; real-time classes are EPERM"
	timersOfVM   = "in a virtual machine, not by a thread's CPU clock (EOPNOTSUPP); a siginfo says that kill(2) was called"
	ownID        = "to the ID that it has; else EPERM, as for a user without privilege"
	fewPrctls    = "names of threads and memory, PR_SET_KEEPCAPS, dumpable, no_new_privs, PR_SET_PDEATHSIG, PR_CAPBSET_READ, subreaper, timer slack, PR_SET_THP_DISABLE, PR_GET_SECUREBITS, PR_GET_TSC; else EINVAL"
	noCancel     = "TFD_TIMER_CANCEL_ON_SET means nothing; a wall clock that is set forward is noticed late"
	boundedWalk  = noDirect + "; with bounds, links of /proc to descriptors are followed by their text, and FIFOs are ENXIO"
	userXattrs   = "of users (user.*), and not of pipes and sockets; others are EPERM or ENODATA, as without rights, or EOPNOTSUPP"
	onlyTells    = "it tells of a clock that nobody disciplines; what would change it is EPERM"
	noFlags      = "RWF_HIPRI, RWF_DSYNC, RWF_SYNC and RWF_NOWAIT change nothing; others are EOPNOTSUPP"
)
