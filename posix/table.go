package posix

import "syscall"

// Takes says which calls with a number are Loam's.
type Takes uint8

// Which calls are Loam's. The values are known to the hook in package syscall
// (unikernel/overlay).
const (
	TakesNone Takes = iota
	TakesFD         // those whose first argument is one of Loam's descriptors
	TakesSome       // the decoder looks at the other arguments
)

// Support says how much of a call is there.
type Support uint8

// Degrees of support.
const (
	Full    Support = iota
	Partial         // Note says what is missing
	Refused         // it fails with Errno, as on a Linux file that cannot do it
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
	SysCopyFileRange = 326
	SysPreadv2       = 327
	SysPwritev2      = 328
	SysEpollPwait2   = 441
	SysFaccessat2    = 439
)

const (
	noSignalMask  = "signals do not interrupt it and the signal mask is ignored"
	networkPaths  = "/etc/resolv.conf, /etc/hosts, /proc/net/igmp and igmp6, for reading, say what the guest's network says; other paths are the host's"
	sameSideDup   = "a descriptor of Loam's cannot take the place of one of the host's, or the reverse: EBADF"
	fewIoctls     = "FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, SIOCOUTQ and SIOCATMARK; else ENOTTY"
	fewControls   = "control messages: SCM_RIGHTS, SCM_CREDENTIALS, IP_PKTINFO, IP_TTL, IP_TOS; MSG_OOB on TCP alone; MSG_ERRQUEUE carries nothing"
	fewSockets    = "AF_INET (TCP, UDP), AF_UNIX, AF_NETLINK (route); else EAFNOSUPPORT"
	fewOptions    = "those of socketoption.go, tcpoption.go, udpoption.go; else ENOPROTOOPT"
	mixedTransfer = "from a regular file of the host to a stream; else EINVAL, upon which programs copy"
)

// Table lists the system calls that Loam serves. Calls that are not in it, and
// calls about the host's descriptors and paths, are Linux's.
var Table = []Call{
	full(syscall.SYS_READ, "read", TakesFD),
	full(syscall.SYS_WRITE, "write", TakesFD),
	partial(syscall.SYS_OPEN, "open", TakesSome, networkPaths),
	full(syscall.SYS_CLOSE, "close", TakesFD),
	partial(syscall.SYS_STAT, "stat", TakesSome, networkPaths),
	partial(syscall.SYS_FSTAT, "fstat", TakesFD, "type and mode, a number, and zeros"),
	partial(syscall.SYS_LSTAT, "lstat", TakesSome, networkPaths),
	partial(syscall.SYS_POLL, "poll", TakesSome, noSignalMask),
	refused(syscall.SYS_LSEEK, "lseek", TakesFD, syscall.ESPIPE),
	partial(syscall.SYS_IOCTL, "ioctl", TakesFD, fewIoctls),
	refused(syscall.SYS_PREAD64, "pread64", TakesFD, syscall.ESPIPE),
	refused(syscall.SYS_PWRITE64, "pwrite64", TakesFD, syscall.ESPIPE),
	full(syscall.SYS_READV, "readv", TakesFD),
	full(syscall.SYS_WRITEV, "writev", TakesFD),
	partial(syscall.SYS_SELECT, "select", TakesSome, noSignalMask+"; only sets larger than 1024 bits can name Loam's descriptors"),
	full(syscall.SYS_DUP, "dup", TakesFD),
	partial(syscall.SYS_DUP2, "dup2", TakesSome, sameSideDup),
	partial(syscall.SYS_SENDFILE, "sendfile", TakesSome, mixedTransfer),
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
	full(syscall.SYS_UNAME, "uname", TakesSome),
	partial(syscall.SYS_FCNTL, "fcntl", TakesFD, "F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL (O_NONBLOCK); else EINVAL"),
	refused(syscall.SYS_FSYNC, "fsync", TakesFD, syscall.EINVAL),
	refused(syscall.SYS_FDATASYNC, "fdatasync", TakesFD, syscall.EINVAL),
	refused(syscall.SYS_FTRUNCATE, "ftruncate", TakesFD, syscall.EINVAL),
	partial(syscall.SYS_ACCESS, "access", TakesSome, networkPaths),
	full(syscall.SYS_EPOLL_CREATE, "epoll_create", TakesSome),
	partial(syscall.SYS_EPOLL_WAIT, "epoll_wait", TakesFD, noSignalMask),
	full(syscall.SYS_EPOLL_CTL, "epoll_ctl", TakesFD),
	partial(syscall.SYS_OPENAT, "openat", TakesSome, networkPaths),
	partial(syscall.SYS_NEWFSTATAT, "newfstatat", TakesSome, networkPaths),
	partial(syscall.SYS_PSELECT6, "pselect6", TakesSome, noSignalMask+"; only sets larger than 1024 bits can name Loam's descriptors"),
	partial(syscall.SYS_PPOLL, "ppoll", TakesSome, noSignalMask),
	partial(syscall.SYS_FACCESSAT, "faccessat", TakesSome, networkPaths),
	refused(syscall.SYS_SPLICE, "splice", TakesSome, syscall.EINVAL),
	partial(syscall.SYS_EPOLL_PWAIT, "epoll_pwait", TakesFD, noSignalMask),
	full(syscall.SYS_ACCEPT4, "accept4", TakesFD),
	full(syscall.SYS_EPOLL_CREATE1, "epoll_create1", TakesSome),
	partial(syscall.SYS_DUP3, "dup3", TakesSome, sameSideDup),
	refused(syscall.SYS_PREADV, "preadv", TakesFD, syscall.ESPIPE),
	refused(syscall.SYS_PWRITEV, "pwritev", TakesFD, syscall.ESPIPE),
	partial(syscall.SYS_RECVMMSG, "recvmmsg", TakesFD, fewControls),
	partial(SysSendmmsg, "sendmmsg", TakesFD, fewControls),
	refused(SysCopyFileRange, "copy_file_range", TakesSome, syscall.EINVAL),
	refused(SysPreadv2, "preadv2", TakesFD, syscall.ESPIPE),
	refused(SysPwritev2, "pwritev2", TakesFD, syscall.ESPIPE),
	partial(SysFaccessat2, "faccessat2", TakesSome, networkPaths),
	partial(SysEpollPwait2, "epoll_pwait2", TakesFD, noSignalMask),
}
