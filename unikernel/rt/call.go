package rt

import (
	"syscall"
	"unsafe"

	"loam/posix"
)

// Calls that package syscall names otherwise or not at all.
const (
	sysSendmmsg    = posix.SysSendmmsg
	sysFaccessat2  = posix.SysFaccessat2
	sysEpollPwait2 = posix.SysEpollPwait2
)

// call serves a system call. It is entered from the door in package syscall with
// what the program passed; it answers as syscall.Syscall6 does.
//
// It is nosplit: the arguments may be addresses of the caller's stack, which
// must not move before they have become pointers. All that it calls takes
// pointers as unsafe.Pointer. What it does not know is left to callFile, and that
// leaves it to callPath: a table each for descriptors and sockets, for what is
// done to open files, and for names.
//
// long: it is a table, of which the compiler makes a jump table.
//
//go:linkname call
//go:nosplit
func call(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr) {
	if ending.Load() && trap < uintptr(len(takes)) && takes[trap] == uint8(posix.TakesFD) {
		park()
	}
	switch trap {
	// Any descriptor.
	case syscall.SYS_READ:
		return sysRead(fd(a1), ptr(a2), int(a3))
	case syscall.SYS_WRITE:
		return sysWrite(fd(a1), ptr(a2), int(a3))
	case syscall.SYS_READV:
		return sysReadv(fd(a1), ptr(a2), int(a3))
	case syscall.SYS_WRITEV:
		return sysWritev(fd(a1), ptr(a2), int(a3))
	case syscall.SYS_CLOSE:
		return sysClose(fd(a1))
	case syscall.SYS_FCNTL:
		return sysFcntl(fd(a1), int(int32(a2)), int(a3), ptr(a3))
	case syscall.SYS_IOCTL:
		return sysIoctl(fd(a1), int(uint32(a2)), ptr(a3))
	case syscall.SYS_DUP:
		return sysDup(fd(a1))
	case syscall.SYS_DUP2, syscall.SYS_DUP3:
		return sysDup3(fd(a1), fd(a2), int(int32(a3)), trap == syscall.SYS_DUP2)
	case posix.SysCloseRange:
		return sysCloseRange(uint32(a1), uint32(a2), int(int32(a3)))

	// Sockets.
	case syscall.SYS_SOCKET:
		return sysSocket(int(int32(a1)), int(int32(a2)), int(int32(a3)))
	case syscall.SYS_SOCKETPAIR:
		return sysSocketpair(int(int32(a1)), int(int32(a2)), int(int32(a3)), ptr(a4))
	case syscall.SYS_BIND:
		return sysBind(fd(a1), ptr(a2), int(uint32(a3)))
	case syscall.SYS_LISTEN:
		return sysListen(fd(a1), int(int32(a2)))
	case syscall.SYS_ACCEPT:
		return sysAccept4(fd(a1), ptr(a2), ptr(a3), 0)
	case syscall.SYS_ACCEPT4:
		return sysAccept4(fd(a1), ptr(a2), ptr(a3), int(a4))
	case syscall.SYS_CONNECT:
		return sysConnect(fd(a1), ptr(a2), int(uint32(a3)))
	case syscall.SYS_SHUTDOWN:
		return sysShutdown(fd(a1), int(int32(a2)))
	case syscall.SYS_GETSOCKNAME:
		return sysName(fd(a1), ptr(a2), ptr(a3), false)
	case syscall.SYS_GETPEERNAME:
		return sysName(fd(a1), ptr(a2), ptr(a3), true)
	case syscall.SYS_GETSOCKOPT:
		return sysGetsockopt(fd(a1), int(int32(a2)), int(int32(a3)), ptr(a4), ptr(a5))
	case syscall.SYS_SETSOCKOPT:
		return sysSetsockopt(fd(a1), int(int32(a2)), int(int32(a3)), ptr(a4), int(uint32(a5)))
	case syscall.SYS_SENDTO:
		return sysSendto(fd(a1), ptr(a2), int(a3), int(int32(a4)), ptr(a5), int(uint32(a6)))
	case syscall.SYS_RECVFROM:
		return sysRecvfrom(fd(a1), ptr(a2), int(a3), int(int32(a4)), ptr(a5), ptr(a6))
	case syscall.SYS_SENDMSG:
		return sysSendmsg(fd(a1), ptr(a2), int(int32(a3)))
	case syscall.SYS_RECVMSG:
		return sysRecvmsg(fd(a1), ptr(a2), int(int32(a3)))
	case sysSendmmsg:
		return sysSendmmsgs(fd(a1), ptr(a2), int(uint32(a3)), int(int32(a4)))
	case syscall.SYS_RECVMMSG:
		return sysRecvmmsgs(fd(a1), ptr(a2), int(uint32(a3)), int(int32(a4)))

	// Waiting.
	case syscall.SYS_EPOLL_CREATE:
		return sysEpollCreate(0)
	case syscall.SYS_EPOLL_CREATE1:
		return sysEpollCreate(int(int32(a1)))
	case syscall.SYS_EPOLL_CTL:
		return sysEpollCtl(fd(a1), int(int32(a2)), fd(a3), ptr(a4))
	case syscall.SYS_EPOLL_WAIT, syscall.SYS_EPOLL_PWAIT:
		return sysEpollWait(fd(a1), ptr(a2), int(int32(a3)), int(int32(a4)))
	case syscall.SYS_EVENTFD:
		return sysEventFD(uint32(a1), 0)
	case syscall.SYS_EVENTFD2:
		return sysEventFD(uint32(a1), int(int32(a2)))
	case syscall.SYS_TIMERFD_CREATE:
		return sysTimerfdCreate(int(int32(a1)), int(int32(a2)))
	case syscall.SYS_TIMERFD_SETTIME:
		return sysTimerfdSettime(fd(a1), int(int32(a2)), ptr(a3), ptr(a4))
	case syscall.SYS_TIMERFD_GETTIME:
		return sysTimerfdGettime(fd(a1), ptr(a2))
	case sysEpollPwait2:
		return sysEpollWait2(fd(a1), ptr(a2), int(int32(a3)), ptr(a4))
	case syscall.SYS_POLL:
		return sysPoll(ptr(a1), int(a2), int(int32(a3)))
	case syscall.SYS_PPOLL:
		return sysPpoll(ptr(a1), int(a2), ptr(a3))
	case syscall.SYS_SELECT, syscall.SYS_PSELECT6:
		return sysSelect(int(int32(a1)), ptr(a2), ptr(a3), ptr(a4), ptr(a5), trap == syscall.SYS_SELECT)
	}
	return callFile(trap, a1, a2, a3, a4, a5, a6)
}

// callFile serves calls about open files and about the process. It is nosplit for
// call.
//
// long: it is a table.
//
//go:nosplit
func callFile(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr) {
	switch trap {
	// Open files.
	case syscall.SYS_LSEEK:
		return sysLseek(fd(a1), int64(a2), int(int32(a3)))
	case syscall.SYS_PREAD64:
		return sysPread(fd(a1), ptr(a2), int(a3), int64(a4))
	case syscall.SYS_PWRITE64:
		return sysPwrite(fd(a1), ptr(a2), int(a3), int64(a4))
	case syscall.SYS_PREADV, posix.SysPreadv2:
		return sysPreadv(fd(a1), ptr(a2), int(a3), int64(a4))
	case syscall.SYS_PWRITEV, posix.SysPwritev2:
		return sysPwritev(fd(a1), ptr(a2), int(a3), int64(a4))
	case syscall.SYS_FSTAT:
		return sysFstat(fd(a1), ptr(a2))
	case syscall.SYS_FTRUNCATE:
		return sysFtruncate(fd(a1), int64(a2))
	case syscall.SYS_FALLOCATE:
		return sysFallocate(fd(a1), uint32(a2), int64(a3), int64(a4))
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		return sysFsync(fd(a1))
	case posix.SysSyncfs:
		return sysSyncfs(fd(a1))
	case syscall.SYS_SYNC:
		return sysSync()
	case syscall.SYS_SYNC_FILE_RANGE:
		return fail(process.SyncFileRange(fd(a1), int64(a2), int64(a3), int(int32(a4))))
	case syscall.SYS_FADVISE64:
		return sysFadvise(fd(a1))
	case syscall.SYS_FLOCK:
		return sysFlock(fd(a1), int(int32(a2)))
	case syscall.SYS_GETDENTS64:
		return sysGetdents(fd(a1), ptr(a2), int(uint32(a3)))
	case syscall.SYS_FCHMOD:
		return sysFchmod(fd(a1), uint32(a2))
	case syscall.SYS_FCHOWN:
		return sysFchown(fd(a1), int32(a2), int32(a3))
	case syscall.SYS_FSTATFS:
		return sysFstatfs(fd(a1), ptr(a2))
	case syscall.SYS_FCHDIR:
		return sysFchdir(fd(a1))
	case syscall.SYS_FSETXATTR:
		return sysSetxattr(byFD, fd(a1), nil, ptr(a2), ptr(a3), a4, int(int32(a5)))
	case syscall.SYS_FGETXATTR:
		return sysGetxattr(byFD, fd(a1), nil, ptr(a2), ptr(a3), a4)
	case syscall.SYS_FLISTXATTR:
		return sysListxattr(byFD, fd(a1), nil, ptr(a2), a3)
	case syscall.SYS_FREMOVEXATTR:
		return sysRemovexattr(byFD, fd(a1), nil, ptr(a2))
	case syscall.SYS_SENDFILE:
		return sysSendfile(fd(a1), fd(a2), ptr(a3), int(a4))
	case posix.SysCopyFileRange:
		return sysCopyFileRange(fd(a1), ptr(a2), fd(a3), ptr(a4), int(a5))
	case syscall.SYS_PIPE:
		return sysPipe(ptr(a1), 0)
	case syscall.SYS_PIPE2:
		return sysPipe(ptr(a1), int(int32(a2)))
	case syscall.SYS_MMAP:
		return sysMmap(a1, a2, int(int32(a3)), int(int32(a4)), fd(a5), int64(a6))
	case syscall.SYS_MUNMAP, syscall.SYS_MPROTECT, syscall.SYS_MADVISE, syscall.SYS_MSYNC:
		return sysMapped(trap, a1, a2, a3)
	case syscall.SYS_MREMAP:
		return sysMremap(a1, a2, a3, int(int32(a4)), a5)

	// What happens to files.
	case syscall.SYS_INOTIFY_INIT:
		return sysInotifyInit(0)
	case syscall.SYS_INOTIFY_INIT1:
		return sysInotifyInit(int(int32(a1)))
	case syscall.SYS_INOTIFY_ADD_WATCH:
		return sysInotifyAddWatch(fd(a1), ptr(a2), uint32(a3))
	case syscall.SYS_INOTIFY_RM_WATCH:
		return sysInotifyRmWatch(fd(a1), int32(a2))

	// The process.
	case syscall.SYS_SETUID, syscall.SYS_SETGID:
		return sysSetID(uint32(a1), trap == syscall.SYS_SETUID)
	case syscall.SYS_SETREUID:
		return sysSetUserIDs(uint32(a1), uint32(a2))
	case syscall.SYS_SETREGID:
		return sysSetGroupIDs(uint32(a1), uint32(a2))
	case syscall.SYS_SETRESUID:
		return sysSetUserIDs(uint32(a1), uint32(a2), uint32(a3))
	case syscall.SYS_SETRESGID:
		return sysSetGroupIDs(uint32(a1), uint32(a2), uint32(a3))
	case syscall.SYS_SETFSUID, syscall.SYS_SETFSGID:
		return sysSetFileID(trap == syscall.SYS_SETFSUID)
	case syscall.SYS_SETPGID:
		return sysSetpgid(int32(a1), int32(a2))
	case syscall.SYS_SETPRIORITY:
		return sysSetpriority(int(int32(a1)), int32(a2), int(int32(a3)))
	case syscall.SYS_CAPGET, syscall.SYS_CAPSET:
		return sysCap(ptr(a1), ptr(a2), trap == syscall.SYS_CAPSET)
	case syscall.SYS_PRCTL:
		return sysPrctl(int(int32(a1)), a2, a3, a4, a5)
	case syscall.SYS_UNAME:
		return sysUname(ptr(a1))
	case syscall.SYS_GETCWD:
		return sysGetcwd(ptr(a1), int(a2))
	case syscall.SYS_ADJTIMEX:
		return sysClockAdjtime(0, ptr(a1))
	case posix.SysClockAdjtime:
		return sysClockAdjtime(int(int32(a1)), ptr(a2))
	case syscall.SYS_UMASK:
		return sysUmask(uint32(a1))
	case syscall.SYS_KILL:
		return sysKill(int(int32(a1)), int(int32(a2)))
	case syscall.SYS_PRLIMIT64:
		return sysPrlimit(int(int32(a1)), int(uint32(a2)), ptr(a3), ptr(a4))
	case syscall.SYS_GETRLIMIT:
		return sysPrlimit(0, int(uint32(a1)), nil, ptr(a2))
	case syscall.SYS_SETRLIMIT:
		return sysPrlimit(0, int(uint32(a1)), ptr(a2), nil)
	case syscall.SYS_TGKILL:
		return sysTgkill(int(int32(a1)), int(int32(a2)), int(int32(a3)))
	}
	return callPath(trap, a1, a2, a3, a4, a5)
}

// callPath serves calls that name files, and refuses all others. It is nosplit for
// call.
//
// long: it is a table.
//
//go:nosplit
func callPath(trap, a1, a2, a3, a4, a5 uintptr) (r1, errno uintptr) {
	const here = atFDCWD
	switch trap {
	case syscall.SYS_OPEN:
		return sysOpen(here, ptr(a1), int(int32(a2)), uint32(a3))
	case syscall.SYS_CREAT:
		return sysOpen(here, ptr(a1), syscall.O_CREAT|syscall.O_WRONLY|syscall.O_TRUNC, uint32(a2))
	case syscall.SYS_OPENAT:
		return sysOpen(fd(a1), ptr(a2), int(int32(a3)), uint32(a4))
	case syscall.SYS_STAT:
		return sysStat(here, ptr(a1), ptr(a2), 0)
	case syscall.SYS_LSTAT:
		return sysStat(here, ptr(a1), ptr(a2), atSymlinkNoFollow)
	case syscall.SYS_NEWFSTATAT:
		return sysStat(fd(a1), ptr(a2), ptr(a3), int(int32(a4)))
	case posix.SysStatx:
		return sysStatx(fd(a1), ptr(a2), int(int32(a3)), ptr(a5))
	case syscall.SYS_ACCESS:
		return sysAccess(here, ptr(a1), uint32(a2), 0)
	case syscall.SYS_FACCESSAT:
		return sysAccess(fd(a1), ptr(a2), uint32(a3), 0)
	case sysFaccessat2:
		return sysAccess(fd(a1), ptr(a2), uint32(a3), int(int32(a4)))
	case syscall.SYS_MKDIR:
		return sysMkdir(here, ptr(a1), uint32(a2))
	case syscall.SYS_MKDIRAT:
		return sysMkdir(fd(a1), ptr(a2), uint32(a3))
	case syscall.SYS_MKNOD:
		return sysMknod(here, ptr(a1), uint32(a2), uint64(a3))
	case syscall.SYS_MKNODAT:
		return sysMknod(fd(a1), ptr(a2), uint32(a3), uint64(a4))
	case syscall.SYS_UNLINK:
		return sysUnlink(here, ptr(a1), 0)
	case syscall.SYS_RMDIR:
		return sysUnlink(here, ptr(a1), atRemoveDir)
	case syscall.SYS_UNLINKAT:
		return sysUnlink(fd(a1), ptr(a2), int(int32(a3)))
	case syscall.SYS_RENAME:
		return sysRename(here, ptr(a1), here, ptr(a2), 0)
	case syscall.SYS_RENAMEAT:
		return sysRename(fd(a1), ptr(a2), fd(a3), ptr(a4), 0)
	case posix.SysRenameat2:
		return sysRename(fd(a1), ptr(a2), fd(a3), ptr(a4), uint32(a5))
	case syscall.SYS_LINK:
		return sysLink(here, ptr(a1), here, ptr(a2), 0)
	case syscall.SYS_LINKAT:
		return sysLink(fd(a1), ptr(a2), fd(a3), ptr(a4), int(int32(a5)))
	case syscall.SYS_SYMLINK:
		return sysSymlink(ptr(a1), here, ptr(a2))
	case syscall.SYS_SYMLINKAT:
		return sysSymlink(ptr(a1), fd(a2), ptr(a3))
	case syscall.SYS_READLINK:
		return sysReadlink(here, ptr(a1), ptr(a2), int(int32(a3)))
	case syscall.SYS_READLINKAT:
		return sysReadlink(fd(a1), ptr(a2), ptr(a3), int(int32(a4)))
	case syscall.SYS_CHMOD:
		return sysChmod(here, ptr(a1), uint32(a2), 0)
	case syscall.SYS_FCHMODAT:
		return sysChmod(fd(a1), ptr(a2), uint32(a3), 0)
	case posix.SysOpenat2:
		return sysOpenat2(fd(a1), ptr(a2), ptr(a3), a4)
	case posix.SysFchmodat2:
		return sysChmod(fd(a1), ptr(a2), uint32(a3), int(int32(a4)))
	case syscall.SYS_CHOWN:
		return sysChown(here, ptr(a1), int32(a2), int32(a3), 0)
	case syscall.SYS_LCHOWN:
		return sysChown(here, ptr(a1), int32(a2), int32(a3), atSymlinkNoFollow)
	case syscall.SYS_FCHOWNAT:
		return sysChown(fd(a1), ptr(a2), int32(a3), int32(a4), int(int32(a5)))
	case syscall.SYS_SETXATTR, syscall.SYS_LSETXATTR:
		return sysSetxattr(byName(trap == syscall.SYS_LSETXATTR), here, ptr(a1), ptr(a2), ptr(a3), a4, int(int32(a5)))
	case syscall.SYS_GETXATTR, syscall.SYS_LGETXATTR:
		return sysGetxattr(byName(trap == syscall.SYS_LGETXATTR), here, ptr(a1), ptr(a2), ptr(a3), a4)
	case syscall.SYS_LISTXATTR, syscall.SYS_LLISTXATTR:
		return sysListxattr(byName(trap == syscall.SYS_LLISTXATTR), here, ptr(a1), ptr(a2), a3)
	case syscall.SYS_REMOVEXATTR, syscall.SYS_LREMOVEXATTR:
		return sysRemovexattr(byName(trap == syscall.SYS_LREMOVEXATTR), here, ptr(a1), ptr(a2))
	case syscall.SYS_UTIME:
		return sysUtime(ptr(a1), ptr(a2))
	case syscall.SYS_UTIMES:
		return sysUtimes(here, ptr(a1), ptr(a2))
	case syscall.SYS_FUTIMESAT:
		return sysUtimes(fd(a1), ptr(a2), ptr(a3))
	case syscall.SYS_UTIMENSAT:
		return sysUtimens(fd(a1), ptr(a2), ptr(a3), int(int32(a4)))
	case posix.SysMemfdCreate:
		return sysMemfdCreate(ptr(a1), int(int32(a2)))
	case syscall.SYS_TRUNCATE:
		return sysTruncate(ptr(a1), int64(a2))
	case syscall.SYS_STATFS:
		return sysStatfs(ptr(a1), ptr(a2))
	case syscall.SYS_CHDIR:
		return sysChdir(ptr(a1))
	case syscall.SYS_CHROOT:
		return sysChroot(ptr(a1))
	}
	if trap >= uintptr(len(refusals)) {
		return failure, uintptr(syscall.ENOSYS)
	}
	return failure, refusals[trap]
}

// failure is what a system call returns beside its errno.
const failure = ^uintptr(0)

// fd is a descriptor. It is nosplit because call is.
//
//go:nosplit
func fd(a uintptr) int { return int(int32(a)) }

// ptr makes a pointer of an address. The first page, where no memory is, becomes
// nil: the runtime throws when it finds such a pointer on a stack. (The detour
// is for vet, which cannot know that a holds a pointer.)
//
//go:nosplit
func ptr(a uintptr) unsafe.Pointer {
	if a < 4096 {
		return nil
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}

// result is how a decoder answers.
func result(n int, errno syscall.Errno) (uintptr, uintptr) {
	if errno != 0 {
		return failure, uintptr(errno)
	}
	return uintptr(n), 0
}

// fail is result for calls without a value.
func fail(errno syscall.Errno) (uintptr, uintptr) { return result(0, errno) }
