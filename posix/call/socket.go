package call

import (
	"loam/abi/linux"
	"loam/posix"
	"loam/posix/file"
	"loam/posix/socket"
)

// Calls of the sockets API, except for messages.

// socketFlags are the bits of a socket's type that do not select a type: SOCK_NONBLOCK and SOCK_CLOEXEC are allowed.
const socketFlags = ^0xf &^ (linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC)

func socketCall(c Caller, a Args) (uint64, linux.Errno) {
	if number(a.A2)&socketFlags != 0 {
		return fail(linux.EINVAL)
	}
	return result(c.Process.Socket(number(a.A1), number(a.A2), number(a.A3)))
}

func socketpair(c Caller, a Args) (uint64, linux.Errno) {
	if number(a.A2)&socketFlags != 0 {
		return fail(linux.EINVAL)
	}
	fds, errno := c.Process.SocketPair(number(a.A1), number(a.A2), number(a.A3))
	if errno != 0 && errno != linux.EMFILE { // Linux stores the numbers before it creates the sockets
		const none = ^uint64(0)
		if errno := c.writeUint64(a.A4, none); errno != 0 {
			return fail(errno)
		}
	}
	return c.pair(a.A4, fds, errno)
}

// address reads a struct sockaddr of n bytes.
func (c Caller) address(addr uint64, n int) (posix.Address, linux.Errno) {
	if n < 0 || n > linux.SizeofSockaddrStorage {
		return posix.Address{}, linux.EINVAL
	}
	l := c.borrow(n)
	defer l.giveBack()
	if errno := c.Memory.Read(l.b, addr); errno != 0 {
		return posix.Address{}, errno
	}
	return socket.ParseAddress(l.b)
}

// putAddress writes a struct sockaddr, truncated to the size stored at size, and stores its full length
// there (accept(2)). If addr is 0, it writes nothing.
func (c Caller) putAddress(addr, size uint64, from posix.Address) linux.Errno {
	if addr == 0 {
		return 0
	}
	room, errno := c.readUint32(size)
	switch {
	case errno != 0:
		return errno
	case int32(room) < 0:
		return linux.EINVAL
	}
	n, errno := c.writeAddress(addr, int(room), from)
	if errno != 0 {
		return errno
	}
	return c.writeUint32(size, uint32(n))
}

// writeAddress writes a struct sockaddr, truncated to room bytes, and returns its full length.
func (c Caller) writeAddress(addr uint64, room int, from posix.Address) (int, linux.Errno) {
	l := c.borrow(linux.SizeofSockaddrStorage)
	defer l.giveBack()
	b := from.Append(l.b[:0])
	return len(b), c.Memory.Write(addr, b[:min(room, len(b))])
}

// isSocket returns ENOTSOCK or EBADF unless fd is a socket. A call checks this before it reads the caller's memory, as on
// Linux.
func (c Caller) isSocket(fd int) linux.Errno { return c.Process.IsSocket(fd) }

func bind(c Caller, a Args) (uint64, linux.Errno) {
	if errno := c.isSocket(fd(a.A1)); errno != 0 {
		return fail(errno)
	}
	to, errno := c.address(a.A2, number(a.A3))
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.Bind(fd(a.A1), to))
}

// connect implements connect(2). As on Linux, the address is read before the kind of the descriptor is checked.
func connect(c Caller, a Args) (uint64, linux.Errno) {
	if errno := c.opened(fd(a.A1)); errno != 0 {
		return fail(errno)
	}
	n := number(a.A3)
	to, errno := c.address(a.A2, n)
	if errno != linux.EFAULT && n >= 0 && n <= linux.SizeofSockaddrStorage {
		if errno := c.isSocket(fd(a.A1)); errno != 0 {
			return fail(errno)
		}
	}
	if errno == 0 {
		errno = c.Process.Connect(fd(a.A1), to)
	}
	return fail(errno)
}

// accept accepts a connection and stores the peer's address. If the address cannot be stored, it closes the new connection.
func (c Caller) accept(a Args, flags int) (uint64, linux.Errno) {
	accepted, peer, errno := c.Process.Accept4(fd(a.A1), flags)
	if errno != 0 {
		return fail(errno)
	}
	if errno = c.putAddress(a.A2, a.A3, peer); errno != 0 {
		c.Process.Close(accepted)
	}
	return result(accepted, errno)
}

func getsockname(c Caller, a Args) (uint64, linux.Errno) { return c.name(a, c.Process.GetSockName) }

func getpeername(c Caller, a Args) (uint64, linux.Errno) { return c.name(a, c.Process.GetPeerName) }

func (c Caller) name(a Args, of func(fd int) (posix.Address, linux.Errno)) (uint64, linux.Errno) {
	name, errno := of(fd(a.A1))
	if errno != 0 {
		return fail(errno)
	}
	room, errno := c.readUint32(a.A3)
	switch {
	case errno != 0:
		return fail(errno)
	case int32(room) < 0:
		return fail(linux.EINVAL)
	}
	n, errno := c.writeAddress(a.A2, int(room), name)
	if errno == 0 {
		errno = c.writeUint32(a.A3, uint32(n))
	}
	return fail(errno)
}

func getsockopt(c Caller, a Args) (uint64, linux.Errno) {
	if errno := c.isSocket(fd(a.A1)); errno != 0 {
		return fail(errno)
	}
	room, errno := c.readUint32(a.A5)
	switch {
	case errno != 0:
		return fail(errno)
	case int32(room) < 0:
		return fail(linux.EINVAL)
	}
	if number(a.A2) == linux.SOL_SOCKET && number(a.A3) == linux.SO_PEERPIDFD {
		return fail(c.peerProcess(fd(a.A1), a.A4, a.A5, room))
	}
	value, errno := c.option(a, int(room))
	if errno != 0 {
		return fail(errno)
	}
	value = value[:optionSize(number(a.A2), number(a.A3), int(room), value)]
	if errno = c.Memory.Write(a.A4, value); errno == 0 {
		errno = c.writeUint32(a.A5, uint32(len(value)))
	}
	return fail(errno)
}

// peerProcess implements SO_PEERPIDFD: it stores a new pidfd at an address, in at most room bytes, and the size at another.
// Errors: ENODATA, EMFILE; EBADF if another thread has closed the descriptor.
func (c Caller) peerProcess(fd int, addr, size uint64, room uint32) linux.Errno {
	o := c.Process.Opened(fd)
	if o == nil {
		return linux.EBADF
	}
	var p file.Watched
	if s, ok := o.File.(interface{ PeerProcess() file.Watched }); ok {
		p = s.PeerProcess()
	}
	if p == nil {
		return linux.ENODATA
	}
	n, errno := c.Process.InstallProcess(p, 0)
	if errno != 0 {
		return errno
	}
	room = min(room, sizeofDescriptor)
	if errno = c.Memory.Write(addr, le.AppendUint32(nil, uint32(n))[:room]); errno == 0 {
		errno = c.writeUint32(size, room)
	}
	if errno != 0 {
		c.Process.CloseProcess(n, p)
	}
	return errno
}

// optionSize returns how many bytes of a value are stored in a buffer of room bytes. As on Linux, a buffer of fewer than 4
// bytes gets one byte for an int option of level IPPROTO_IP whose value is at most 255.
func optionSize(level, name, room int, value []byte) int {
	isInt := level == linux.IPPROTO_IP && name != linux.IP_MULTICAST_IF && len(value) == 4
	if isInt && 0 < room && room < 4 && le.Uint32(value) < 1<<8 {
		return 1
	}
	return min(room, len(value))
}

// option returns the value of a socket option. For some options the caller's buffer contains a request: see posix.IsAsked.
func (c Caller) option(a Args, room int) ([]byte, linux.Errno) {
	descriptor, level, name := fd(a.A1), number(a.A2), number(a.A3)
	if !posix.IsAsked(level, name) {
		return c.Process.GetSockOpt(descriptor, level, name)
	}
	const most = 256 // maximum size of a request in bytes: the list of sources at its end is only output
	request, errno := c.copyIn(a.A4, min(room, most))
	if errno != 0 {
		return nil, errno
	}
	return c.Process.GetSockOptBy(descriptor, level, name, request)
}

// mostOption limits the value of an option, in bytes.
const mostOption = 64 << 10

func setsockopt(c Caller, a Args) (uint64, linux.Errno) {
	descriptor, level, name, n := fd(a.A1), number(a.A2), number(a.A3), number(a.A5)
	if n < 0 {
		return fail(linux.EINVAL)
	}
	if errno := c.isSocket(descriptor); errno != 0 {
		return fail(errno)
	}
	if n > mostOption {
		return fail(linux.EINVAL)
	}
	var value []byte
	var errno linux.Errno
	if level == linux.SOL_SOCKET && name == linux.SO_ATTACH_FILTER {
		value, errno = c.filter(a.A4, n)
	} else {
		value, errno = c.copyIn(a.A4, n)
	}
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.SetSockOpt(descriptor, level, name, value))
}

// filter reads the instructions of a struct sock_fprog.
func (c Caller) filter(addr uint64, n int) ([]byte, linux.Errno) {
	if n != linux.SizeofSockFprog {
		return nil, linux.EINVAL
	}
	f, errno := parse(c, addr, linux.SizeofSockFprog, linux.ParseSockFprog)
	if errno != 0 {
		return nil, errno
	}
	at, errno := c.Memory.Pointer(addr + linux.SockFprogFilter)
	if errno != 0 {
		return nil, errno
	}
	return c.copyIn(at, int(f.Len)*linux.SizeofSockFilter)
}
