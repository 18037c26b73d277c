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

// call serves a system call. It is entered from the door in package syscall
// with what the program passed; it answers as syscall.Syscall6 does, or with
// served false for a call that is Linux's.
//
// It is nosplit: the arguments may be addresses of the caller's stack, which
// must not move before they have become pointers. All that it calls takes
// pointers as unsafe.Pointer.
//
// long: it is a table, of which the compiler makes a jump table.
//
//go:linkname call
//go:nosplit
func call(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr, served bool) {
	if ending.Load() && takes[trap] == uint8(posix.TakesFD) {
		park()
	}
	switch trap {
	// Any descriptor.
	case syscall.SYS_READ:
		r1, errno = sysRead(fd(a1), ptr(a2), int(a3))
	case syscall.SYS_WRITE:
		r1, errno = sysWrite(fd(a1), ptr(a2), int(a3))
	case syscall.SYS_READV:
		r1, errno = sysReadv(fd(a1), ptr(a2), int(a3))
	case syscall.SYS_WRITEV:
		r1, errno = sysWritev(fd(a1), ptr(a2), int(a3))
	case syscall.SYS_CLOSE:
		r1, errno = sysClose(fd(a1))
	case syscall.SYS_FCNTL:
		r1, errno = sysFcntl(fd(a1), int(a2), int(a3))
	case syscall.SYS_IOCTL:
		r1, errno = sysIoctl(fd(a1), int(uint32(a2)), ptr(a3))
	case syscall.SYS_FSTAT:
		r1, errno = sysFstat(fd(a1), ptr(a2))
	case syscall.SYS_DUP:
		r1, errno = sysDup(fd(a1))
	case syscall.SYS_DUP2, syscall.SYS_DUP3:
		if !ours(a1) && !ours(a2) {
			return 0, 0, false
		}
		r1, errno = sysDup3(fd(a1), fd(a2), int(a3), trap == syscall.SYS_DUP2)

	// Sockets.
	case syscall.SYS_SOCKET:
		r1, errno = sysSocket(int(a1), int(a2), int(a3))
	case syscall.SYS_SOCKETPAIR:
		r1, errno = sysSocketpair(int(a1), int(a2), int(a3), ptr(a4))
	case syscall.SYS_BIND:
		r1, errno = sysBind(fd(a1), ptr(a2), int(uint32(a3)))
	case syscall.SYS_LISTEN:
		r1, errno = sysListen(fd(a1), int(int32(a2)))
	case syscall.SYS_ACCEPT:
		r1, errno = sysAccept4(fd(a1), ptr(a2), ptr(a3), 0)
	case syscall.SYS_ACCEPT4:
		r1, errno = sysAccept4(fd(a1), ptr(a2), ptr(a3), int(a4))
	case syscall.SYS_CONNECT:
		r1, errno = sysConnect(fd(a1), ptr(a2), int(uint32(a3)))
	case syscall.SYS_SHUTDOWN:
		r1, errno = sysShutdown(fd(a1), int(int32(a2)))
	case syscall.SYS_GETSOCKNAME:
		r1, errno = sysName(fd(a1), ptr(a2), ptr(a3), false)
	case syscall.SYS_GETPEERNAME:
		r1, errno = sysName(fd(a1), ptr(a2), ptr(a3), true)
	case syscall.SYS_GETSOCKOPT:
		r1, errno = sysGetsockopt(fd(a1), int(int32(a2)), int(int32(a3)), ptr(a4), ptr(a5))
	case syscall.SYS_SETSOCKOPT:
		r1, errno = sysSetsockopt(fd(a1), int(int32(a2)), int(int32(a3)), ptr(a4), int(uint32(a5)))
	case syscall.SYS_SENDTO:
		r1, errno = sysSendto(fd(a1), ptr(a2), int(a3), int(int32(a4)), ptr(a5), int(uint32(a6)))
	case syscall.SYS_RECVFROM:
		r1, errno = sysRecvfrom(fd(a1), ptr(a2), int(a3), int(int32(a4)), ptr(a5), ptr(a6))
	case syscall.SYS_SENDMSG:
		r1, errno = sysSendmsg(fd(a1), ptr(a2), int(int32(a3)))
	case syscall.SYS_RECVMSG:
		r1, errno = sysRecvmsg(fd(a1), ptr(a2), int(int32(a3)))
	case sysSendmmsg:
		r1, errno = sysSendmmsgs(fd(a1), ptr(a2), int(uint32(a3)), int(int32(a4)))
	case syscall.SYS_RECVMMSG:
		r1, errno = sysRecvmmsgs(fd(a1), ptr(a2), int(uint32(a3)), int(int32(a4)))
	case syscall.SYS_SENDFILE:
		if !ours(a1) && !ours(a2) {
			return 0, 0, false
		}
		r1, errno = sysSendfile(fd(a1), fd(a2), ptr(a3), int(a4))

	// Waiting.
	case syscall.SYS_EPOLL_CREATE:
		r1, errno = sysEpollCreate(0)
	case syscall.SYS_EPOLL_CREATE1:
		r1, errno = sysEpollCreate(int(a1))
	case syscall.SYS_EPOLL_CTL:
		r1, errno = sysEpollCtl(fd(a1), int(int32(a2)), fd(a3), ptr(a4))
	case syscall.SYS_EPOLL_WAIT, syscall.SYS_EPOLL_PWAIT:
		r1, errno = sysEpollWait(fd(a1), ptr(a2), int(int32(a3)), int(int32(a4)))
	case sysEpollPwait2:
		r1, errno = sysEpollWait2(fd(a1), ptr(a2), int(int32(a3)), ptr(a4))
	case syscall.SYS_POLL:
		if !pollsOurs(a1, a2) {
			return 0, 0, false
		}
		r1, errno = sysPoll(ptr(a1), int(a2), int(int32(a3)))
	case syscall.SYS_PPOLL:
		if !pollsOurs(a1, a2) {
			return 0, 0, false
		}
		r1, errno = sysPpoll(ptr(a1), int(a2), ptr(a3))
	case syscall.SYS_SELECT, syscall.SYS_PSELECT6:
		if int(int32(a1)) <= firstFD {
			return 0, 0, false
		}
		r1, errno = sysSelect(int(int32(a1)), ptr(a2), ptr(a3), ptr(a4), ptr(a5), trap == syscall.SYS_SELECT)

	// Names.
	case syscall.SYS_UNAME:
		r1, errno = sysUname(ptr(a1))

	// Files that say what the network says.
	case syscall.SYS_OPEN:
		return openServed(served1(a1), a2)
	case syscall.SYS_OPENAT:
		return openServed(served1(a2), a3)
	case syscall.SYS_STAT, syscall.SYS_LSTAT:
		return statServed(served1(a1), a2)
	case syscall.SYS_NEWFSTATAT:
		return statServed(served1(a2), a3)
	case syscall.SYS_ACCESS:
		return accessServed(served1(a1), a2)
	case syscall.SYS_FACCESSAT, sysFaccessat2:
		return accessServed(served1(a2), a3)

	// Refused: see posix.Table.
	case syscall.SYS_SPLICE, posix.SysCopyFileRange:
		if !ours(a1) && !ours(a3) {
			return 0, 0, false
		}
		r1, errno = failure, refusals[trap]
	default:
		r1, errno = failure, refusals[trap]
	}
	return r1, errno, true
}

// failure is what a system call returns beside its errno.
const failure = ^uintptr(0)

// fd is a descriptor. It is nosplit because call is.
//
//go:nosplit
func fd(a uintptr) int { return int(int32(a)) }

// ours reports whether an argument is one of Loam's descriptors. It is nosplit
// because call is.
//
//go:nosplit
func ours(a uintptr) bool { return uint32(a)-firstFD < spanFD }

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
