package posix

import "syscall"

// Takes says whose a call is.
type Takes uint8

// Whose a call is. The values are known to the hook in package syscall
// (unikernel/overlay): it lets through what is the host's, and asks the decoder
// for all else.
const (
	TakesNone Takes = iota // it is the host's: see HostCalls
	TakesFD                // Loam's, and its first argument is a descriptor
	TakesSome              // Loam's
)

// Support says how much of a call is there.
type Support uint8

// Degrees of support.
const (
	Full    Support = iota
	Partial         // Note says what is missing
	Refused         // it fails with Errno, as on a Linux that does not allow it
)

// Call is one line of the table of system calls.
type Call struct {
	Number  uintptr
	Name    string
	Takes   Takes
	Support Support
	Note    string
	Errno   Errno // of a call that is refused
}

func full(number uintptr, name string, takes Takes) Call {
	return Call{Number: number, Name: name, Takes: takes, Support: Full}
}

func partial(number uintptr, name string, takes Takes, note string) Call {
	return Call{Number: number, Name: name, Takes: takes, Support: Partial, Note: note}
}

func refused(number uintptr, name string, takes Takes, errno Errno) Call {
	return Call{Number: number, Name: name, Takes: takes, Support: Refused, Errno: errno}
}

// Numbers that package syscall lacks (arch/x86/entry/syscalls/syscall_64.tbl).
const (
	SysSendmmsg      = 307
	sysNameToHandle  = 303
	sysOpenByHandle  = 304
	SysClockAdjtime  = 305
	SysSyncfs        = 306
	SysRenameat2     = 316
	SysMemfdCreate   = 319
	SysCopyFileRange = 326
	SysPreadv2       = 327
	SysPwritev2      = 328
	SysStatx         = 332
	SysCloseRange    = 436
	SysOpenat2       = 437
	SysFaccessat2    = 439
	SysEpollPwait2   = 441
	SysFchmodat2     = 452
)

const (
	noSignalMask = "signals do not interrupt it and the signal mask is ignored"
	noDirect     = "O_DIRECT, O_SYNC and leases mean nothing"
	fewIoctls    = "FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, SIOCOUTQ and SIOCATMARK, those of a terminal on a standard stream, and those of netdevice(7) that tell of one interface; else ENOTTY"
	fewControls  = "control messages: SCM_RIGHTS, SCM_CREDENTIALS, IP_PKTINFO, IP_TTL, IP_TOS, IP_ORIGDSTADDR and their like of IPv6, SO_TIMESTAMP and SO_TIMESTAMPNS, PACKET_AUXDATA; MSG_OOB on TCP alone; MSG_ERRQUEUE on sockets for datagrams"
	fewSockets   = "AF_INET and AF_INET6 (TCP, UDP, ping, raw), AF_UNIX, AF_NETLINK (route), AF_PACKET; else EAFNOSUPPORT"
	fewOptions   = "those of socket.go, tcpoption.go, udpoption.go, rawsocket.go, sourcefilter.go, packetoption.go; else ENOPROTOOPT"
	fewFcntls    = "F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, locks, seals, F_GETPIPE_SZ; else EINVAL"
	onlyGrows    = "space is not set aside; FALLOC_FL_KEEP_SIZE or none, else EOPNOTSUPP"
	fromTree     = "from a file of the tree; else EINVAL, upon which programs copy"
	mapsOfFile   = "of a file: a private mapping is a copy; shared ones of a file are at one address, not MAP_FIXED, with the rights of the file"
	notOfShared  = "nothing is done to shared mappings of files"
	oneOfShared  = "of shared mappings of a file, one is moved if it is the only one"
	noCores      = "limits are the kernel's to keep; that of core dumps is remembered, and there are none"
	onlyItself   = "of the program itself, or of threads of it; else ESRCH"
	newestName   = "a file of several names is told of by the newest; what is written to a mapping is not told"
	ofClocks     = "CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME; those that wake a machine are EPERM"
	fewMemfds    = "neither huge pages nor what came with Linux 6.3; SEAL_WRITE is EBUSY while the file is mapped shared at all"
	ownID        = "to the ID that it has; else EPERM, as for a user without privilege"
	fewPrctls    = "PR_SET_NAME and PR_GET_NAME (of a process), PR_SET_VMA, PR_SET_KEEPCAPS, dumpable, no_new_privs, PR_SET_PDEATHSIG, PR_CAPBSET_READ; else EINVAL"
	noCancel     = "TFD_TIMER_CANCEL_ON_SET means nothing; a wall clock that is set forward is noticed late"
	boundedWalk  = noDirect + "; with bounds, links of /proc to descriptors are followed by their text, and FIFOs are ENXIO"
	userXattrs   = "of users (user.*), and not of pipes and sockets; others are EPERM or ENODATA, as without rights, or EOPNOTSUPP"
	onlyTells    = "it tells of a clock that nobody disciplines; what would change it is EPERM"
	noFlags      = "flags are not heard"
)

// Table lists the system calls that Loam serves, and those that it refuses with
// an error of their own. A call that is neither here nor in HostCalls does not
// exist: ENOSYS.
var Table = []Call{
	full(syscall.SYS_READ, "read", TakesFD),
	full(syscall.SYS_WRITE, "write", TakesFD),
	partial(syscall.SYS_OPEN, "open", TakesSome, noDirect),
	full(syscall.SYS_CLOSE, "close", TakesFD),
	full(syscall.SYS_STAT, "stat", TakesSome),
	full(syscall.SYS_FSTAT, "fstat", TakesFD),
	full(syscall.SYS_LSTAT, "lstat", TakesSome),
	partial(syscall.SYS_POLL, "poll", TakesSome, noSignalMask),
	full(syscall.SYS_LSEEK, "lseek", TakesFD),
	partial(syscall.SYS_MMAP, "mmap", TakesSome, mapsOfFile),
	partial(syscall.SYS_MPROTECT, "mprotect", TakesSome, notOfShared),
	full(syscall.SYS_MUNMAP, "munmap", TakesSome),
	partial(syscall.SYS_IOCTL, "ioctl", TakesFD, fewIoctls),
	full(syscall.SYS_PREAD64, "pread64", TakesFD),
	full(syscall.SYS_PWRITE64, "pwrite64", TakesFD),
	full(syscall.SYS_READV, "readv", TakesFD),
	full(syscall.SYS_WRITEV, "writev", TakesFD),
	full(syscall.SYS_ACCESS, "access", TakesSome),
	full(syscall.SYS_PIPE, "pipe", TakesSome),
	partial(syscall.SYS_SELECT, "select", TakesSome, noSignalMask),
	partial(syscall.SYS_MREMAP, "mremap", TakesSome, oneOfShared),
	full(syscall.SYS_MSYNC, "msync", TakesSome),
	partial(syscall.SYS_MADVISE, "madvise", TakesSome, notOfShared),
	full(syscall.SYS_DUP, "dup", TakesFD),
	full(syscall.SYS_DUP2, "dup2", TakesFD),
	partial(syscall.SYS_SENDFILE, "sendfile", TakesFD, fromTree),
	partial(syscall.SYS_SOCKET, "socket", TakesSome, fewSockets),
	full(syscall.SYS_CONNECT, "connect", TakesFD),
	full(syscall.SYS_ACCEPT, "accept", TakesFD),
	full(syscall.SYS_SENDTO, "sendto", TakesFD),
	full(syscall.SYS_RECVFROM, "recvfrom", TakesFD),
	partial(syscall.SYS_SENDMSG, "sendmsg", TakesFD, fewControls),
	partial(syscall.SYS_RECVMSG, "recvmsg", TakesFD, fewControls),
	full(syscall.SYS_SHUTDOWN, "shutdown", TakesFD),
	full(syscall.SYS_BIND, "bind", TakesFD),
	full(syscall.SYS_LISTEN, "listen", TakesFD),
	full(syscall.SYS_GETSOCKNAME, "getsockname", TakesFD),
	full(syscall.SYS_GETPEERNAME, "getpeername", TakesFD),
	full(syscall.SYS_SOCKETPAIR, "socketpair", TakesSome),
	partial(syscall.SYS_SETSOCKOPT, "setsockopt", TakesFD, fewOptions),
	partial(syscall.SYS_GETSOCKOPT, "getsockopt", TakesFD, fewOptions),
	refused(syscall.SYS_EXECVE, "execve", TakesSome, syscall.ENOSYS),
	refused(syscall.SYS_WAIT4, "wait4", TakesSome, syscall.ECHILD),
	partial(syscall.SYS_KILL, "kill", TakesSome, onlyItself),
	full(syscall.SYS_UNAME, "uname", TakesSome),
	partial(syscall.SYS_FCNTL, "fcntl", TakesFD, fewFcntls),
	full(syscall.SYS_FLOCK, "flock", TakesFD),
	full(syscall.SYS_FSYNC, "fsync", TakesFD),
	full(syscall.SYS_FDATASYNC, "fdatasync", TakesFD),
	full(syscall.SYS_TRUNCATE, "truncate", TakesSome),
	full(syscall.SYS_FTRUNCATE, "ftruncate", TakesFD),
	full(syscall.SYS_GETCWD, "getcwd", TakesSome),
	full(syscall.SYS_CHDIR, "chdir", TakesSome),
	full(syscall.SYS_FCHDIR, "fchdir", TakesFD),
	full(syscall.SYS_RENAME, "rename", TakesSome),
	full(syscall.SYS_MKDIR, "mkdir", TakesSome),
	full(syscall.SYS_RMDIR, "rmdir", TakesSome),
	full(syscall.SYS_CREAT, "creat", TakesSome),
	full(syscall.SYS_LINK, "link", TakesSome),
	full(syscall.SYS_UNLINK, "unlink", TakesSome),
	full(syscall.SYS_SYMLINK, "symlink", TakesSome),
	full(syscall.SYS_READLINK, "readlink", TakesSome),
	full(syscall.SYS_CHMOD, "chmod", TakesSome),
	full(syscall.SYS_FCHMOD, "fchmod", TakesFD),
	full(syscall.SYS_CHOWN, "chown", TakesSome),
	full(syscall.SYS_FCHOWN, "fchown", TakesFD),
	full(syscall.SYS_LCHOWN, "lchown", TakesSome),
	partial(syscall.SYS_SETUID, "setuid", TakesSome, ownID),
	partial(syscall.SYS_SETGID, "setgid", TakesSome, ownID),
	partial(syscall.SYS_SETPGID, "setpgid", TakesSome, "to the group that it is in; else EPERM"),
	partial(syscall.SYS_SETREUID, "setreuid", TakesSome, ownID),
	partial(syscall.SYS_SETREGID, "setregid", TakesSome, ownID),
	refused(syscall.SYS_SETSID, "setsid", TakesSome, syscall.EPERM),
	refused(syscall.SYS_SETGROUPS, "setgroups", TakesSome, syscall.EPERM),
	partial(syscall.SYS_SETRESUID, "setresuid", TakesSome, ownID),
	partial(syscall.SYS_SETRESGID, "setresgid", TakesSome, ownID),
	partial(syscall.SYS_SETFSUID, "setfsuid", TakesSome, ownID),
	partial(syscall.SYS_SETFSGID, "setfsgid", TakesSome, ownID),
	full(syscall.SYS_CAPGET, "capget", TakesSome),
	partial(syscall.SYS_CAPSET, "capset", TakesSome, "to those that there are; else EPERM"),
	partial(syscall.SYS_SETPRIORITY, "setpriority", TakesSome, "of the program itself; a higher nice value changes nothing"),
	partial(syscall.SYS_PRCTL, "prctl", TakesSome, fewPrctls),
	full(syscall.SYS_UMASK, "umask", TakesSome),
	partial(syscall.SYS_GETRLIMIT, "getrlimit", TakesSome, noCores),
	refused(syscall.SYS_PTRACE, "ptrace", TakesSome, syscall.EPERM),
	full(syscall.SYS_MKNOD, "mknod", TakesSome),
	full(syscall.SYS_STATFS, "statfs", TakesSome),
	full(syscall.SYS_FSTATFS, "fstatfs", TakesFD),
	refused(syscall.SYS_PIVOT_ROOT, "pivot_root", TakesSome, syscall.EPERM),
	partial(syscall.SYS_SETRLIMIT, "setrlimit", TakesSome, noCores),
	full(syscall.SYS_CHROOT, "chroot", TakesSome),
	full(syscall.SYS_SYNC, "sync", TakesSome),
	refused(syscall.SYS_MOUNT, "mount", TakesSome, syscall.EPERM),
	refused(syscall.SYS_UMOUNT2, "umount2", TakesSome, syscall.EPERM),
	refused(syscall.SYS_REBOOT, "reboot", TakesSome, syscall.EPERM),
	refused(syscall.SYS_SETHOSTNAME, "sethostname", TakesSome, syscall.EPERM),
	refused(syscall.SYS_SETDOMAINNAME, "setdomainname", TakesSome, syscall.EPERM),
	full(syscall.SYS_GETDENTS64, "getdents64", TakesFD),
	partial(syscall.SYS_ADJTIMEX, "adjtimex", TakesSome, onlyTells),
	partial(syscall.SYS_SETXATTR, "setxattr", TakesSome, userXattrs),
	partial(syscall.SYS_LSETXATTR, "lsetxattr", TakesSome, userXattrs),
	partial(syscall.SYS_FSETXATTR, "fsetxattr", TakesFD, userXattrs),
	partial(syscall.SYS_GETXATTR, "getxattr", TakesSome, userXattrs),
	partial(syscall.SYS_LGETXATTR, "lgetxattr", TakesSome, userXattrs),
	partial(syscall.SYS_FGETXATTR, "fgetxattr", TakesFD, userXattrs),
	partial(syscall.SYS_LISTXATTR, "listxattr", TakesSome, userXattrs),
	partial(syscall.SYS_LLISTXATTR, "llistxattr", TakesSome, userXattrs),
	partial(syscall.SYS_FLISTXATTR, "flistxattr", TakesFD, userXattrs),
	partial(syscall.SYS_REMOVEXATTR, "removexattr", TakesSome, userXattrs),
	partial(syscall.SYS_LREMOVEXATTR, "lremovexattr", TakesSome, userXattrs),
	partial(syscall.SYS_FREMOVEXATTR, "fremovexattr", TakesFD, userXattrs),
	refused(syscall.SYS_TKILL, "tkill", TakesSome, syscall.ESRCH),
	full(syscall.SYS_FADVISE64, "fadvise64", TakesFD),
	full(syscall.SYS_EPOLL_CREATE, "epoll_create", TakesSome),
	partial(syscall.SYS_EPOLL_WAIT, "epoll_wait", TakesFD, noSignalMask),
	full(syscall.SYS_EPOLL_CTL, "epoll_ctl", TakesFD),
	partial(syscall.SYS_TGKILL, "tgkill", TakesSome, onlyItself),
	full(syscall.SYS_UTIME, "utime", TakesSome),
	full(syscall.SYS_UTIMES, "utimes", TakesSome),
	partial(syscall.SYS_OPENAT, "openat", TakesSome, noDirect),
	full(syscall.SYS_MKDIRAT, "mkdirat", TakesSome),
	full(syscall.SYS_MKNODAT, "mknodat", TakesSome),
	full(syscall.SYS_FCHOWNAT, "fchownat", TakesSome),
	full(syscall.SYS_FUTIMESAT, "futimesat", TakesSome),
	full(syscall.SYS_NEWFSTATAT, "newfstatat", TakesSome),
	full(syscall.SYS_UNLINKAT, "unlinkat", TakesSome),
	full(syscall.SYS_RENAMEAT, "renameat", TakesSome),
	full(syscall.SYS_LINKAT, "linkat", TakesSome),
	full(syscall.SYS_SYMLINKAT, "symlinkat", TakesSome),
	full(syscall.SYS_READLINKAT, "readlinkat", TakesSome),
	full(syscall.SYS_FCHMODAT, "fchmodat", TakesSome),
	full(syscall.SYS_FACCESSAT, "faccessat", TakesSome),
	partial(syscall.SYS_PSELECT6, "pselect6", TakesSome, noSignalMask),
	partial(syscall.SYS_PPOLL, "ppoll", TakesSome, noSignalMask),
	refused(syscall.SYS_UNSHARE, "unshare", TakesSome, syscall.EPERM),
	refused(syscall.SYS_SPLICE, "splice", TakesFD, syscall.EINVAL),
	full(syscall.SYS_SYNC_FILE_RANGE, "sync_file_range", TakesFD),
	full(syscall.SYS_UTIMENSAT, "utimensat", TakesSome),
	partial(syscall.SYS_EPOLL_PWAIT, "epoll_pwait", TakesFD, noSignalMask),
	partial(syscall.SYS_FALLOCATE, "fallocate", TakesFD, onlyGrows),
	full(syscall.SYS_ACCEPT4, "accept4", TakesFD),
	full(syscall.SYS_EPOLL_CREATE1, "epoll_create1", TakesSome),
	full(syscall.SYS_DUP3, "dup3", TakesFD),
	full(syscall.SYS_PIPE2, "pipe2", TakesSome),
	full(syscall.SYS_PREADV, "preadv", TakesFD),
	full(syscall.SYS_PWRITEV, "pwritev", TakesFD),
	partial(syscall.SYS_RECVMMSG, "recvmmsg", TakesFD, fewControls),
	partial(syscall.SYS_PRLIMIT64, "prlimit64", TakesSome, noCores),
	refused(sysNameToHandle, "name_to_handle_at", TakesSome, syscall.EOPNOTSUPP),
	refused(sysOpenByHandle, "open_by_handle_at", TakesFD, syscall.EOPNOTSUPP),
	partial(SysClockAdjtime, "clock_adjtime", TakesSome, onlyTells),
	full(syscall.SYS_INOTIFY_INIT, "inotify_init", TakesSome),
	partial(syscall.SYS_INOTIFY_ADD_WATCH, "inotify_add_watch", TakesFD, newestName),
	full(syscall.SYS_INOTIFY_RM_WATCH, "inotify_rm_watch", TakesFD),
	full(syscall.SYS_INOTIFY_INIT1, "inotify_init1", TakesSome),
	full(syscall.SYS_EVENTFD, "eventfd", TakesSome),
	partial(syscall.SYS_TIMERFD_CREATE, "timerfd_create", TakesSome, ofClocks),
	full(syscall.SYS_TIMERFD_GETTIME, "timerfd_gettime", TakesFD),
	partial(syscall.SYS_TIMERFD_SETTIME, "timerfd_settime", TakesFD, noCancel),
	full(syscall.SYS_EVENTFD2, "eventfd2", TakesSome),
	full(SysSyncfs, "syncfs", TakesFD),
	partial(SysMemfdCreate, "memfd_create", TakesSome, fewMemfds),
	partial(SysSendmmsg, "sendmmsg", TakesFD, fewControls),
	full(SysRenameat2, "renameat2", TakesSome),
	full(SysCopyFileRange, "copy_file_range", TakesFD),
	partial(SysPreadv2, "preadv2", TakesFD, noFlags),
	partial(SysPwritev2, "pwritev2", TakesFD, noFlags),
	full(SysStatx, "statx", TakesSome),
	full(SysCloseRange, "close_range", TakesSome),
	partial(SysOpenat2, "openat2", TakesSome, boundedWalk),
	full(SysFaccessat2, "faccessat2", TakesSome),
	partial(SysEpollPwait2, "epoll_pwait2", TakesFD, noSignalMask),
	full(SysFchmodat2, "fchmodat2", TakesSome),
}
