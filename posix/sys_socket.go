package posix

import (
	"time"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/inet"
	"loam/posix/netlink"
	"loam/posix/packet"
	"loam/posix/sockdiag"
	"loam/posix/socket"
	"loam/posix/unix"
)

// Calls that create, bind and connect sockets.

// typeFlags are the flags that may be combined with a socket type, such as SOCK_STREAM.
const typeFlags = linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC

// Socket implements socket(2). Supported families: AF_INET and AF_INET6 (stream, datagram and raw),
// AF_UNIX, AF_NETLINK (route and sock_diag) and AF_PACKET. Other families fail as on a Linux kernel without them.
func (p *Process) Socket(domain, typ, protocol int) (int, Errno) {
	s, errno := p.newSocket(domain, typ&^typeFlags, protocol)
	if errno != 0 {
		return -1, errno
	}
	return p.install(s, typ&typeFlags)
}

// newSocket creates a socket of an address family, such as AF_INET. Errors: EAFNOSUPPORT, and errors of the family.
func (p *Process) newSocket(domain, typ, protocol int) (socket.Socket, Errno) {
	switch domain {
	case linux.AF_UNIX:
		return unix.New(&p.names, p.sight().Who.UID, typ, protocol)
	case linux.AF_NETLINK:
		return netlink.New(p.net, &p.serial, p.credentials.PID, typ, protocol, func(request []byte, emit func([]byte)) (end, errno Errno) {
			return sockdiag.Dump(p.network(), request, emit)
		})
	case linux.AF_PACKET:
		if p.net != nil {
			return packet.New(p.net, typ, protocol)
		}
	case linux.AF_INET:
		if p.net != nil {
			return inet.New(&p.inet, domain, typ, protocol, uint32(p.Credentials().UID))
		}
	case linux.AF_INET6:
		if p.net != nil && p.net.HasIPv6() {
			return inet.New(&p.inet, domain, typ, protocol, uint32(p.Credentials().UID))
		}
	}
	return nil, linux.EAFNOSUPPORT
}

// SocketPair implements socketpair(2) for AF_UNIX. Errors: EMFILE, errors of socket(2), EOPNOTSUPP for another family.
func (p *Process) SocketPair(domain, typ, protocol int) (fds [2]int, errno Errno) {
	if p.fds.Full(p.MostFiles()) {
		return fds, linux.EMFILE
	}
	s, errno := p.newSocket(domain, typ&^typeFlags, protocol)
	if errno != 0 {
		return fds, errno
	}
	a, ok := s.(*unix.Socket)
	if !ok {
		s.Close()
		return fds, linux.EOPNOTSUPP
	}
	b, _ := unix.New(&p.names, p.sight().Who.UID, typ&^typeFlags, protocol) // the first socket has the same arguments
	unix.Pair(p, a, b)
	if fds[0], errno = p.install(a, typ&typeFlags); errno != 0 {
		b.Close()
		return fds, errno
	}
	if fds[1], errno = p.install(b, typ&typeFlags); errno != 0 {
		p.Close(fds[0])
	}
	return fds, errno
}

// Bind implements bind(2). Errors: EBADF, ENOTSOCK, and errors of the family.
func (p *Process) Bind(fd int, a Address) Errno {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return errno
	}
	if p.who == nil || p.may(linux.CAP_NET_BIND_SERVICE) {
		return s.Bind(p, a)
	}
	return p.inet.BindUnprivileged(p, s, a)
}

// Listen implements listen(2). Errors: EBADF, ENOTSOCK, and EOPNOTSUPP for a socket without
// connections.
func (p *Process) Listen(fd, backlog int) Errno {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return errno
	}
	return s.Listen(p, int(min(uint(backlog), uint(p.inet.Backlog.Load())))) // a negative backlog is a large one, as on Linux
}

// Accept4 implements accept4(2). It also returns the peer's address. On a blocking socket it waits for a
// connection, at most for SO_RCVTIMEO.
func (p *Process) Accept4(fd, flags int) (int, Address, Errno) {
	o, s, errno := p.socket(fd)
	switch {
	case errno != linux.EBADF && flags&^typeFlags != 0:
		return -1, Address{}, linux.EINVAL
	case errno != 0:
		return -1, Address{}, errno
	}
	c, errno := s.Accept()
	if errno == linux.EAGAIN && !o.Nonblocking() {
		c, errno = p.acceptWaiting(s)
	}
	if errno != 0 {
		return -1, Address{}, errno
	}
	if u, ok := c.(*unix.Socket); ok {
		u.SetOwner(p.sight().Who.UID)
	}
	peer := peerOf(c)
	accepted, errno := p.install(c, flags)
	return accepted, peer, errno
}

func (p *Process) acceptWaiting(s socket.Socket) (socket.Socket, Errno) {
	timeout, _ := s.Common().Timeouts()
	w := p.newSleeper(s.Queue(), timeout)
	defer w.Leave()
	for {
		c, errno := s.Accept()
		if errno != linux.EAGAIN {
			return c, errno
		}
		if errno = w.Sleep(); errno != 0 {
			return nil, errno
		}
	}
}

// Connect implements connect(2). On a blocking socket it waits for the connection, at most for SO_SNDTIMEO.
func (p *Process) Connect(fd int, a Address) Errno {
	o, s, errno := p.socket(fd)
	if errno != 0 {
		return errno
	}
	errno = s.Connect(p, a)
	switch {
	case o.Nonblocking():
		return errno
	case errno == linux.EINPROGRESS || errno == linux.EALREADY:
		return p.connected(s, a)
	case errno == linux.EAGAIN: // for an AF_UNIX socket: the backlog of the listener is full
		return p.connectWaiting(s, a)
	}
	return errno
}

// connected waits until a handshake has ended. It then calls Connect of the socket again, which returns the result.
func (p *Process) connected(s socket.Socket, a Address) Errno {
	if errno := p.handshake(s); errno != 0 {
		return errno
	}
	return s.Connect(p, a)
}

// handshake waits until a handshake has ended, and returns its error. EINPROGRESS: SO_SNDTIMEO has expired.
func (p *Process) handshake(s socket.Socket) Errno {
	_, timeout := s.Common().Timeouts()
	w := p.newSleeper(s.Queue(), timeout)
	defer w.Leave()
	for {
		if s.Events()&(PollOut|PollErr|PollHup) != 0 {
			return s.TakeError()
		}
		switch w.Sleep() {
		case linux.EAGAIN:
			return linux.EINPROGRESS
		case linux.EINTR:
			return linux.EINTR
		}
	}
}

// begun waits for the handshake of a connection that a send has begun (TCP Fast Open). As on Linux, the send returns an error
// of the handshake even if data was in the SYN.
func (p *Process) begun(f file.File) Errno {
	s, ok := f.(*inet.TCPSocket)
	if !ok {
		return linux.EINPROGRESS
	}
	if errno := p.handshake(s); errno != 0 {
		return errno
	}
	return s.Opened()
}

// connectRetry is the interval at which a blocking connect of a Unix socket retries while the
// listener's backlog is full. Linux wakes the waiters instead. The case is too rare for a queue.
const connectRetry = 5 * time.Millisecond

func (p *Process) connectWaiting(s socket.Socket, a Address) Errno {
	_, timeout := s.Common().Timeouts()
	for waited := time.Duration(0); timeout == 0 || waited < timeout; waited += connectRetry {
		if errno := s.Connect(p, a); errno != linux.EAGAIN {
			return errno
		}
		if p.Waiting().WaitFor(nil, connectRetry) == file.Interrupted {
			return linux.EINTR
		}
	}
	return linux.EAGAIN
}

// Shutdown implements shutdown(2). Errors: EBADF, ENOTSOCK, EINVAL, ENOTCONN.
func (p *Process) Shutdown(fd, how int) Errno {
	_, s, errno := p.socket(fd)
	switch {
	case errno != 0:
		return errno
	case how < linux.SHUT_RD || how > linux.SHUT_RDWR:
		return linux.EINVAL
	}
	return s.Shutdown(how)
}

// GetSockName implements getsockname(2). Errors: EBADF, ENOTSOCK.
func (p *Process) GetSockName(fd int) (Address, Errno) {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return Address{}, errno
	}
	return s.Local(), 0
}

// GetPeerName implements getpeername(2). Errors: EBADF, ENOTSOCK, ENOTCONN.
func (p *Process) GetPeerName(fd int) (Address, Errno) {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return Address{}, errno
	}
	return s.Peer()
}

// GetSockOpt implements getsockopt(2) and returns the encoded value. SO_ERROR clears the pending
// error. Errors: EBADF, ENOTSOCK, ENOPROTOOPT.
func (p *Process) GetSockOpt(fd, level, name int) ([]byte, Errno) {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return nil, errno
	}
	if level == linux.SOL_SOCKET && name == linux.SO_ERROR {
		return socket.IntValue(int(s.TakeError())), 0
	}
	return s.Option(level, name)
}

// GetSockOptBy implements getsockopt(2) for an option whose buffer contains a request: see IsAsked.
func (p *Process) GetSockOptBy(fd, level, name int, request []byte) ([]byte, Errno) {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return nil, errno
	}
	if asked, ok := s.(interface {
		OptionFor(level, name int, request []byte) ([]byte, Errno)
	}); ok && IsAsked(level, name) {
		return asked.OptionFor(level, name, request)
	}
	return p.GetSockOpt(fd, level, name)
}

// IsAsked reports whether getsockopt(2) of an option reads a request from the buffer.
func IsAsked(level, name int) bool {
	return inet.IsFilterOption(level, name) || level == linux.SOL_PACKET && name == linux.PACKET_HDRLEN
}

// SetSockOpt implements setsockopt(2). An int option of level IPPROTO_IP also accepts a value of one byte, and most accept
// no value in place of 0.
func (p *Process) SetSockOpt(fd, level, name int, value []byte) Errno {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return errno
	}
	switch {
	case level != linux.IPPROTO_IP || name == linux.IP_MULTICAST_IF || len(value) >= 4:
	case len(value) > 0:
		value = socket.IntValue(int(value[0]))
	case name != linux.IP_TTL && name != linux.IP_MULTICAST_TTL && name != linux.IP_MULTICAST_LOOP && name != linux.IP_MULTICAST_ALL && name != linux.IP_FREEBIND:
		value = socket.IntValue(0)
	}
	return s.SetOption(level, name, value)
}

// Exit ends the process as on Linux. It closes all descriptors, and returns when the peers have acknowledged all data, or
// after timeout.
func (p *Process) Exit(timeout time.Duration) {
	p.fds.RemoveAll()
	deadline := time.Now().Add(timeout)
	pause := 100 * time.Microsecond
	for p.inet.Unfinished() && time.Now().Before(deadline) {
		time.Sleep(pause)
		pause = min(2*pause, 10*time.Millisecond)
	}
}
