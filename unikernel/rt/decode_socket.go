package rt

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"loam/posix"
)

// Decoders of the calls of the sockets API, but for messages.

//go:noinline
func sysSocket(domain, typ, protocol int) (uintptr, uintptr) {
	return result(process.Socket(domain, typ, protocol))
}

//go:noinline
func sysSocketpair(domain, typ, protocol int, p unsafe.Pointer) (uintptr, uintptr) {
	if p == nil {
		return fail(syscall.EFAULT)
	}
	fds, errno := process.SocketPair(domain, typ, protocol)
	if errno == 0 {
		*(*[2]int32)(p) = [2]int32{int32(fds[0]), int32(fds[1])}
	}
	return fail(errno)
}

// address reads a struct sockaddr.
func address(p unsafe.Pointer, n int) (posix.Address, syscall.Errno) {
	const most = 128 // struct sockaddr_storage
	if n < 0 || n > most {
		return posix.Address{}, syscall.EINVAL
	}
	if p == nil {
		return posix.Address{}, syscall.EFAULT
	}
	var b [most]byte
	copy(b[:n], bytesAt(p, n))
	return posix.ParseAddress(b[:n])
}

// putAddress writes a struct sockaddr, cut to the size at *size, and its full
// length there (accept(2)). A nil p is for programs that do not ask.
func putAddress(p, size unsafe.Pointer, a posix.Address) syscall.Errno {
	if p == nil {
		return 0
	}
	if size == nil {
		return syscall.EFAULT
	}
	n := (*int32)(size)
	if *n < 0 {
		return syscall.EINVAL
	}
	b := a.Append(make([]byte, 0, 128))
	copy(bytesAt(p, int(*n)), b)
	*n = int32(len(b))
	return 0
}

//go:noinline
func sysBind(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	a, errno := address(p, n)
	if errno != 0 {
		return fail(errno)
	}
	return fail(process.Bind(fd, a))
}

//go:noinline
func sysListen(fd, backlog int) (uintptr, uintptr) { return fail(process.Listen(fd, backlog)) }

//go:noinline
func sysAccept4(fd int, p, size unsafe.Pointer, flags int) (uintptr, uintptr) {
	accepted, peer, errno := process.Accept4(fd, flags)
	if errno == 0 {
		errno = putAddress(p, size, peer)
	}
	return result(accepted, errno)
}

//go:noinline
func sysConnect(fd int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	a, errno := address(p, n)
	if errno != 0 {
		return fail(errno)
	}
	return fail(process.Connect(fd, a))
}

//go:noinline
func sysShutdown(fd, how int) (uintptr, uintptr) { return fail(process.Shutdown(fd, how)) }

// sysName is getsockname and getpeername.
//
//go:noinline
func sysName(fd int, p, size unsafe.Pointer, peer bool) (uintptr, uintptr) {
	name := process.GetSockName
	if peer {
		name = process.GetPeerName
	}
	a, errno := name(fd)
	if errno == 0 && (p == nil || size == nil) {
		errno = syscall.EFAULT
	}
	if errno == 0 {
		errno = putAddress(p, size, a)
	}
	return fail(errno)
}

//go:noinline
func sysGetsockopt(fd, level, name int, p, size unsafe.Pointer) (uintptr, uintptr) {
	value, errno := getsockopt(fd, level, name, p, size)
	switch {
	case errno != 0:
		return fail(errno)
	case p == nil || size == nil:
		return fail(syscall.EFAULT)
	}
	n := (*int32)(size)
	if *n < 0 {
		return fail(syscall.EINVAL)
	}
	*n = int32(copy(bytesAt(p, int(*n)), value))
	return 0, 0
}

// getsockopt gives the program's own value along where the option is one that is asked about
// with one.
func getsockopt(fd, level, name int, p, size unsafe.Pointer) ([]byte, syscall.Errno) {
	if !posix.IsAsked(level, name) || p == nil || size == nil || *(*int32)(size) < 0 {
		return process.GetSockOpt(fd, level, name)
	}
	const most = 256 // no such value is longer, but for sources, which are only answered
	request, errno := copyIn(p, min(int(*(*int32)(size)), most))
	if errno != 0 {
		return nil, errno
	}
	return process.GetSockOptBy(fd, level, name, request)
}

//go:noinline
func sysSetsockopt(fd, level, name int, p unsafe.Pointer, n int) (uintptr, uintptr) {
	const most = 64 << 10
	if n < 0 || n > most {
		return fail(syscall.EINVAL)
	}
	value, errno := copyIn(p, n)
	if level == syscall.SOL_SOCKET && name == syscall.SO_ATTACH_FILTER && errno == 0 {
		value, errno = filterIn(p, n)
	}
	if errno != 0 {
		return fail(errno)
	}
	return fail(process.SetSockOpt(fd, level, name, value))
}

// filterIn reads the instructions of a struct sock_fprog.
func filterIn(p unsafe.Pointer, n int) ([]byte, syscall.Errno) {
	if n != syscall.SizeofSockFprog {
		return nil, syscall.EINVAL
	}
	f := (*syscall.SockFprog)(p)
	return copyIn(unsafe.Pointer(f.Filter), int(f.Len)*posix.FilterInstructionLen)
}

// controlIn reads the control messages of a struct msghdr (cmsg(3)).
func controlIn(p unsafe.Pointer, n int) ([]posix.Control, syscall.Errno) {
	const most = 64 << 10
	if n > most {
		return nil, syscall.ENOBUFS
	}
	b, errno := copyIn(p, n)
	if errno != 0 {
		return nil, errno
	}
	var list []posix.Control
	for len(b) >= syscall.SizeofCmsghdr {
		size := int(binary.NativeEndian.Uint64(b))
		if size < syscall.SizeofCmsghdr || size > len(b) {
			return nil, syscall.EINVAL
		}
		list = append(list, posix.Control{
			Level: int(int32(binary.NativeEndian.Uint32(b[8:]))),
			Type:  int(int32(binary.NativeEndian.Uint32(b[12:]))),
			Data:  b[syscall.SizeofCmsghdr:size],
		})
		b = b[min(align8(size), len(b)):]
	}
	return list, 0
}

// controlOut writes control messages and returns how many bytes it took, and
// MSG_CTRUNC when some did not fit.
func controlOut(p unsafe.Pointer, n int, list []posix.Control) (int, int) {
	var b []byte
	for _, c := range list {
		size := syscall.SizeofCmsghdr + len(c.Data)
		if p == nil || len(b)+size > n {
			return copy(bytesAt(p, n), b), syscall.MSG_CTRUNC
		}
		b = binary.NativeEndian.AppendUint64(b, uint64(size))
		b = binary.NativeEndian.AppendUint32(b, uint32(c.Level))
		b = binary.NativeEndian.AppendUint32(b, uint32(c.Type))
		b = append(b, c.Data...)
		if pad := align8(size) - size; len(b)+pad <= n {
			b = append(b, make([]byte, pad)...)
		}
	}
	if len(b) == 0 {
		return 0, 0
	}
	return copy(bytesAt(p, n), b), 0
}

func align8(n int) int { return (n + 7) &^ 7 }
