package call

import (
	"os"
	"testing"

	"loam/abi/linux"
)

// Offsets in memory of the tests of Unix sockets: names, an option and its size, and the name that getsockname(2) returns.
const (
	unixNames, unixOption, unixSize, unixResult = 0x100, 0x200, 0x210, 0x220
)

// unixNameSize is the size of the address of an abstract name.
const unixNameSize = 8

// unixName stores an abstract name of one letter and the process ID, and returns its address. Several processes may run the test.
func (s *sequence) unixName(letter byte) uint64 {
	offset := unixNames + 16*uint64(letter-'A')
	s.put(offset, le.AppendUint32([]byte{linux.AF_UNIX, 0, 0, letter}, uint32(os.Getpid()))...)
	return at(offset)
}

// passCredentials sets SO_PASSCRED.
func (s *sequence) passCredentials(fd uint64) {
	s.int32(unixOption, 1)
	s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_PASSCRED, at(unixOption), 4)
}

// showName calls getsockname(2). The text of a generated name is hidden.
func (s *sequence) showName(fd uint64) {
	s.put(unixResult, make([]byte, 16)...)
	s.int32(unixSize, 16)
	s.call(linux.SYS_GETSOCKNAME, fd, at(unixResult), at(unixSize))
	s.mask(unixResult+3, 5)
}

// With SO_PASSCRED, connect(2) and a send call of a datagram socket bind a socket without a name to a generated name, also if
// they fail later. A socket that is accepted has the option of its listener.
func TestPassCredentialsBindsAsOnLinux(t *testing.T) {
	for _, typ := range []uint64{linux.SOCK_STREAM, linux.SOCK_DGRAM, linux.SOCK_SEQPACKET} {
		s := &sequence{}
		open := func() uint64 { return s.open(linux.SYS_SOCKET, linux.AF_UNIX, typ|linux.SOCK_NONBLOCK, 0) }
		server, client, plain, sender, named := open(), open(), open(), open(), open()
		nobody, name := s.unixName('A'), s.unixName('B')
		for _, fd := range []uint64{server, client, sender, named} {
			s.passCredentials(fd)
		}
		s.call(linux.SYS_BIND, server, name, unixNameSize)
		s.call(linux.SYS_BIND, named, s.unixName('C'), unixNameSize)
		s.call(linux.SYS_LISTEN, server, 5)
		for _, fd := range []uint64{client, plain, named} {
			s.call(linux.SYS_CONNECT, fd, at(0), 2)
			s.showName(fd)
			for _, to := range []uint64{nobody, name} {
				s.call(linux.SYS_CONNECT, fd, to, unixNameSize)
				s.showName(fd)
			}
		}
		s.call(linux.SYS_SENDTO, sender, at(0), 1, 0, nobody, unixNameSize)
		s.showName(sender)
		a, _ := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, typ, 0, at(0))
		s.passCredentials(a)
		s.call(linux.SYS_WRITE, a, at(0), 1)
		s.showName(a)
		if typ != linux.SOCK_DGRAM {
			accepted := s.open(linux.SYS_ACCEPT4, server, 0, 0, 0)
			s.int32(unixSize, 4)
			s.call(linux.SYS_GETSOCKOPT, accepted, linux.SOL_SOCKET, linux.SO_PASSCRED, at(unixOption), at(unixSize))
		}
		asOnLinux(t, s)
	}
}

// A datagram socket that is connected receives only messages of its peer. The check happens at connect(2) and at each message.
func TestDatagramPeersAsOnLinux(t *testing.T) {
	s := &sequence{}
	open := func(name byte) (uint64, uint64) {
		fd, at := s.open(linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0), s.unixName(name)
		s.call(linux.SYS_BIND, fd, at, unixNameSize)
		return fd, at
	}
	a, toA := open('A')
	b, toB := open('B')
	c, _ := open('C')
	d, toD := open('D')
	send := func(fd uint64) {
		s.call(linux.SYS_WRITE, fd, at(0), 1)
		s.call(linux.SYS_SENDTO, fd, at(0), 1, 0, toA, unixNameSize)
	}
	s.call(linux.SYS_CONNECT, c, toA, unixNameSize)
	send(c)
	s.call(linux.SYS_CONNECT, a, toB, unixNameSize)
	send(c)
	s.call(linux.SYS_CONNECT, d, toA, unixNameSize)
	send(d)
	send(b)
	s.call(linux.SYS_CONNECT, b, toA, unixNameSize)
	send(b)
	send(a)
	s.call(linux.SYS_CONNECT, a, toA, unixNameSize) // a is connected to b
	s.call(linux.SYS_CONNECT, d, toD, unixNameSize)
	s.call(linux.SYS_WRITE, d, at(0), 1)
	s.call(linux.SYS_CONNECT, c, toD, unixNameSize)
	s.call(linux.SYS_CLOSE, a)
	send(b)
	asOnLinux(t, s)
}

// SO_PEERCRED of a socket without a peer has no process and no user.
func TestNoPeerAsOnLinux(t *testing.T) {
	s := &sequence{}
	unix := s.open(linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_STREAM, 0)
	datagram := s.open(linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_DGRAM, 0)
	s.call(linux.SYS_BIND, datagram, s.unixName('A'), unixNameSize)
	s.call(linux.SYS_CONNECT, datagram, s.unixName('A'), unixNameSize)
	udp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_DGRAM, 0)
	tcp := s.open(linux.SYS_SOCKET, linux.AF_INET6, linux.SOCK_STREAM, 0)
	netlink := s.open(linux.SYS_SOCKET, linux.AF_NETLINK, linux.SOCK_RAW, 0)
	for _, fd := range []uint64{unix, datagram, udp, tcp, netlink} {
		for _, size := range []uint32{0, 5, 12, 20} {
			s.int32(unixSize, size)
			s.call(linux.SYS_GETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_PEERCRED, at(unixOption), at(unixSize))
		}
		s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_PEERCRED, at(unixOption), 12)
	}
	asOnLinux(t, s)
}
