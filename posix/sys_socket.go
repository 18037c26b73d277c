package posix

import (
	"syscall"
	"time"
)

// Calls that make, name and connect sockets.

// typeFlags are the flags that ride on a socket's type.
const typeFlags = syscall.SOCK_NONBLOCK | syscall.SOCK_CLOEXEC

// Socket is socket(2). Families: AF_INET and AF_INET6 (stream, datagram and raw), AF_UNIX,
// AF_NETLINK (route), AF_PACKET. Errors for the rest are those of a Linux kernel without
// them.
func (p *Process) Socket(domain, typ, protocol int) (int, Errno) {
	s, errno := p.newSocket(domain, typ&^typeFlags, protocol)
	if errno != 0 {
		return -1, errno
	}
	return p.install(s, typ&typeFlags)
}

func (p *Process) newSocket(domain, typ, protocol int) (socket, Errno) {
	switch domain {
	case syscall.AF_UNIX:
		return p.newUnix(typ, protocol)
	case syscall.AF_NETLINK:
		return p.newNetlink(typ, protocol)
	case syscall.AF_PACKET:
		if p.net != nil {
			return p.newPacket(typ, protocol)
		}
	case syscall.AF_INET:
		if p.net != nil {
			return p.newInet(domain, typ, protocol)
		}
	case syscall.AF_INET6:
		if p.net != nil && p.net.HasIPv6() {
			return p.newInet(domain, typ, protocol)
		}
	}
	return nil, syscall.EAFNOSUPPORT
}

// SocketPair is socketpair(2), of AF_UNIX.
func (p *Process) SocketPair(domain, typ, protocol int) (fds [2]int, errno Errno) {
	if domain != syscall.AF_UNIX {
		return fds, syscall.EOPNOTSUPP
	}
	a, errno := p.newUnix(typ&^typeFlags, protocol)
	if errno != 0 {
		return fds, errno
	}
	b, errno := p.newUnix(typ&^typeFlags, protocol)
	if errno != 0 {
		return fds, errno
	}
	pair(a, b)
	if fds[0], errno = p.install(a, typ&typeFlags); errno != 0 {
		b.close()
		return fds, errno
	}
	if fds[1], errno = p.install(b, typ&typeFlags); errno != 0 {
		p.Close(fds[0])
	}
	return fds, errno
}

// Bind is bind(2).
func (p *Process) Bind(fd int, a Address) Errno {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return errno
	}
	return s.bind(a)
}

// Listen is listen(2).
func (p *Process) Listen(fd, backlog int) Errno {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return errno
	}
	return s.listen(backlog)
}

// Accept4 is accept4(2); it returns the peer's address.
func (p *Process) Accept4(fd, flags int) (int, Address, Errno) {
	o, s, errno := p.socket(fd)
	switch {
	case errno != 0:
		return -1, Address{}, errno
	case flags&^typeFlags != 0:
		return -1, Address{}, syscall.EINVAL
	}
	c, errno := s.accept()
	if errno == syscall.EAGAIN && !o.nonblocking() {
		c, errno = acceptWaiting(s)
	}
	if errno != 0 {
		return -1, Address{}, errno
	}
	peer := peerOf(c)
	accepted, errno := p.install(c, flags)
	return accepted, peer, errno
}

func acceptWaiting(s socket) (socket, Errno) {
	timeout, _ := s.base().timeouts()
	w := newSleeper(s.queue(), timeout)
	defer w.leave()
	for {
		c, errno := s.accept()
		if errno != syscall.EAGAIN || !w.sleep() {
			return c, errno
		}
	}
}

// Connect is connect(2).
func (p *Process) Connect(fd int, a Address) Errno {
	o, s, errno := p.socket(fd)
	if errno != 0 {
		return errno
	}
	errno = s.connect(a)
	switch {
	case o.nonblocking():
		return errno
	case errno == syscall.EINPROGRESS || errno == syscall.EALREADY:
		return connected(s, a)
	case errno == syscall.EAGAIN: // AF_UNIX: the listener's queue is full
		return connectWaiting(s, a)
	}
	return errno
}

// connected waits for the end of a handshake, and connects once more to hear how
// it ended.
func connected(s socket, a Address) Errno {
	_, timeout := s.base().timeouts()
	w := newSleeper(s.queue(), timeout)
	defer w.leave()
	for {
		if s.events()&(PollOut|PollErr|PollHup) != 0 {
			if errno := s.takeError(); errno != 0 {
				return errno
			}
			return s.connect(a)
		}
		if !w.sleep() {
			return syscall.EINPROGRESS
		}
	}
}

// connectRetry is how often a blocking connect looks whether a full listener of
// a Unix socket has room again. Linux keeps a queue for these; they are rare.
const connectRetry = 5 * time.Millisecond

func connectWaiting(s socket, a Address) Errno {
	_, timeout := s.base().timeouts()
	for waited := time.Duration(0); timeout == 0 || waited < timeout; waited += connectRetry {
		if errno := s.connect(a); errno != syscall.EAGAIN {
			return errno
		}
		time.Sleep(connectRetry)
	}
	return syscall.EAGAIN
}

// Shutdown is shutdown(2).
func (p *Process) Shutdown(fd, how int) Errno {
	_, s, errno := p.socket(fd)
	switch {
	case errno != 0:
		return errno
	case how < syscall.SHUT_RD || how > syscall.SHUT_RDWR:
		return syscall.EINVAL
	}
	return s.shutdown(how)
}

// GetSockName is getsockname(2).
func (p *Process) GetSockName(fd int) (Address, Errno) {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return Address{}, errno
	}
	return s.local(), 0
}

// GetPeerName is getpeername(2).
func (p *Process) GetPeerName(fd int) (Address, Errno) {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return Address{}, errno
	}
	return s.peer()
}

// GetSockOpt is getsockopt(2).
func (p *Process) GetSockOpt(fd, level, name int) ([]byte, Errno) {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return nil, errno
	}
	if level == syscall.SOL_SOCKET && name == syscall.SO_ERROR {
		return intValue(int(s.takeError())), 0
	}
	return s.option(level, name)
}

// GetSockOptBy is getsockopt(2) of an option that a program asks about with a value of its own:
// see IsAsked.
func (p *Process) GetSockOptBy(fd, level, name int, request []byte) ([]byte, Errno) {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return nil, errno
	}
	if asked, ok := s.(interface {
		groupFilter(level, name int, request []byte) ([]byte, Errno)
	}); ok && IsAsked(level, name) {
		return asked.groupFilter(level, name, request)
	}
	return p.GetSockOpt(fd, level, name)
}

// IsAsked reports whether an option is one to ask about with a value.
func IsAsked(level, name int) bool { return isFilterOption(level, name) }

// SetSockOpt is setsockopt(2). An option of level IPPROTO_IP whose value is an int may be given
// as a byte.
func (p *Process) SetSockOpt(fd, level, name int, value []byte) Errno {
	_, s, errno := p.socket(fd)
	if errno != 0 {
		return errno
	}
	if level == syscall.IPPROTO_IP && len(value) > 0 && len(value) < 4 {
		value = intValue(int(value[0]))
	}
	return s.setOption(level, name, value)
}
