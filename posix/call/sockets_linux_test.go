package call

import (
	"testing"

	"loam/abi/linux"
)

// header stores a struct msghdr: the address of a name and its size, a vector of n buffers, and control messages.
func (s *sequence) header(offset, name, nameSize, vector, n, control, controlSize uint64) {
	s.word(offset, name, nameSize, vector, n, control, controlSize, 0)
}

// Offsets of the parts of messages in memory.
const (
	msgHeader  = 0x100
	msgVector  = 0x180
	msgControl = 0x200
	msgName    = 0x400
	msgData    = 0x1000
	msgRoom    = 0x2000
)

// message stores a header for a message in two pieces, without a name and without control messages.
func (s *sequence) message(first, firstSize, second, secondSize uint64) {
	s.word(msgVector, at(first), firstSize, at(second), secondSize)
	s.header(msgHeader, 0, 0, at(msgVector), 2, 0, 0)
}

// Messages are sent from and received into vectors. A message that does not fit is cut off, and flags say so.
func TestMessagesAsOnLinux(t *testing.T) {
	for _, kind := range []uint64{linux.SOCK_STREAM, linux.SOCK_DGRAM, linux.SOCK_SEQPACKET} {
		s := &sequence{}
		a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, kind|linux.SOCK_NONBLOCK, 0, at(0))
		s.put(msgData, []byte("the quick brown fox")...)
		for _, flags := range []uint64{0, linux.MSG_PEEK, linux.MSG_TRUNC, linux.MSG_TRUNC | linux.MSG_PEEK, linux.MSG_DONTWAIT} {
			s.message(msgData, 4, msgData+10, 5)
			s.call(linux.SYS_SENDMSG, a, at(msgHeader), 0)
			s.message(msgRoom, 3, msgRoom+0x100, 2)
			s.call(linux.SYS_RECVMSG, b, at(msgHeader), flags)
			s.message(msgRoom, 3, msgRoom+0x100, 50)
			s.call(linux.SYS_RECVMSG, b, at(msgHeader), 0)
			s.call(linux.SYS_RECVMSG, b, at(msgHeader), 0)
		}
		s.call(linux.SYS_SENDTO, a, at(msgData), 5, 0, 0, 0)
		s.call(linux.SYS_RECVFROM, b, at(msgRoom), 3, 0, 0, 0)
		s.call(linux.SYS_RECVFROM, b, at(msgRoom), 30, linux.MSG_TRUNC, 0, 0)
		s.call(linux.SYS_SENDTO, a, at(msgData), 0, 0, 0, 0)
		s.call(linux.SYS_RECVFROM, b, at(msgRoom), 30, 0, 0, 0)
		s.call(linux.SYS_SENDTO, a, noAddress, 5, 0, 0, 0)
		s.call(linux.SYS_SENDTO, none, at(msgData), 5, 0, 0, 0)
		s.call(linux.SYS_SENDTO, a, at(msgData), 5, linux.MSG_NOSIGNAL, 0, 0)
		s.call(linux.SYS_WRITE, a, at(msgData), 7)
		s.call(linux.SYS_READ, b, at(msgRoom), 20)
		s.call(linux.SYS_SHUTDOWN, a, linux.SHUT_WR)
		s.call(linux.SYS_SHUTDOWN, a, 3)
		s.call(linux.SYS_SHUTDOWN, a, minus)
		s.call(linux.SYS_SENDTO, a, at(msgData), 5, linux.MSG_NOSIGNAL, 0, 0)
		s.call(linux.SYS_RECVFROM, b, at(msgRoom), 5, 0, 0, 0)
		s.call(linux.SYS_CLOSE, a)
		s.call(linux.SYS_RECVFROM, b, at(msgRoom), 5, 0, 0, 0)
		asOnLinux(t, s)
	}
}

// The fields of a struct msghdr are checked before anything is sent or received.
func TestHeadersAsOnLinux(t *testing.T) {
	s := &sequence{}
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	f := s.file("file", "x")
	send := func(name, nameSize, vector, n, control, controlSize uint64) {
		s.word(msgVector, at(msgData), 4, at(msgData), 4)
		s.header(msgHeader, name, nameSize, vector, n, control, controlSize)
		s.call(linux.SYS_SENDMSG, a, at(msgHeader), 0)
		s.header(msgHeader, name, nameSize, vector, n, control, controlSize)
		s.call(linux.SYS_RECVMSG, b, at(msgHeader), 0)
	}
	v := at(msgVector)
	send(0, 0, v, 2, 0, 0)
	send(0, 0, v, 0, 0, 0)
	send(0, 0, 0, 0, 0, 0)
	send(0, 0, v, 1025, 0, 0)
	send(0, 0, v, minus, 0, 0)
	send(0, 0, noAddress, 1, 0, 0)
	send(0, 99, v, 1, 0, 0)
	send(at(msgName), minus, v, 1, 0, 0)
	send(at(msgName), 1<<31, v, 1, 0, 0)
	send(0, 0, v, 1, at(msgControl), 0)
	send(0, 0, v, 1, 0, 1<<20)
	for _, fd := range []uint64{none, f} {
		s.call(linux.SYS_SENDMSG, fd, at(msgHeader), 0)
		s.call(linux.SYS_SENDMSG, fd, noAddress, 0)
		s.call(linux.SYS_RECVMSG, fd, at(msgHeader), 0)
		s.call(linux.SYS_RECVMSG, fd, noAddress, 0)
	}
	s.call(linux.SYS_SENDMSG, a, noAddress, 0)
	s.call(linux.SYS_RECVMSG, a, noAddress, 0)
	asOnLinux(t, s)
}

// Several messages are sent and received by one call, up to the first that fails.
func TestManyMessagesAsOnLinux(t *testing.T) {
	s := &sequence{}
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	const first, each = 0x800, linux.SizeofMmsghdr
	list := func(data uint64, sizes ...uint64) {
		for i, size := range sizes {
			v, n := uint64(msgVector+16*i), uint64(1)
			s.word(v, at(data+uint64(i)*0x40), size)
			if size == minus {
				n = 5000 // too many buffers
			}
			s.word(first+uint64(i)*each, 0, 0, at(v), n, 0, 0, 0, 0)
		}
	}
	s.put(msgData, []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefABCDEF")...)
	for _, sizes := range [][]uint64{{3}, {3, 0, 5}, {3, minus, 5}, {minus}, {}} {
		list(msgData, sizes...)
		s.call(linux.SYS_SENDMMSG, a, at(first), uint64(len(sizes)), 0)
		list(msgRoom, 10, 2, 10, 10)
		s.call(linux.SYS_RECVMMSG, b, at(first), 4, 0, 0)
		s.call(linux.SYS_RECVMMSG, b, at(first), 4, 0, 0)
	}
	s.call(linux.SYS_SENDMMSG, none, at(first), 1, 0)
	s.call(linux.SYS_SENDMMSG, none, at(first), 0, 0)
	s.call(linux.SYS_SENDMMSG, a, noAddress, 1, 0)
	s.call(linux.SYS_RECVMMSG, b, noAddress, 1, linux.MSG_DONTWAIT, 0)
	asOnLinux(t, s)
}

// A descriptor that is passed in a control message is received as another one. Control messages that are damaged are refused.
func TestControlAsOnLinux(t *testing.T) {
	s := &sequence{}
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0, at(0))
	f := s.file("file", "content")
	s.put(msgData, []byte("data")...)
	control := func(length, level, kind uint64, fds ...uint64) {
		s.word(msgControl, length, level|kind<<32, 0, 0, 0)
		for i, fd := range fds {
			if fd&^plain == resultOf {
				s.add(step{kind: pointers, at: msgControl + 16 + uint64(i)*8, args: []uint64{fd}})
			} else {
				s.int32(msgControl+16, uint32(fd))
			}
		}
		s.word(msgVector, at(msgData), 4)
	}
	for _, c := range []struct {
		length, level, kind, room uint64
		fd                        uint64
	}{
		{19, linux.SOL_SOCKET, linux.SCM_RIGHTS, 24, none},
		{20, linux.SOL_SOCKET, linux.SCM_RIGHTS, 24, none},
		{20, linux.SOL_SOCKET, linux.SCM_RIGHTS, 24, uint64(1<<32 - 1)},
		{16, linux.SOL_SOCKET, linux.SCM_RIGHTS, 24, none},
		{15, linux.SOL_SOCKET, linux.SCM_RIGHTS, 24, none},
		{0, linux.SOL_SOCKET, linux.SCM_RIGHTS, 24, none},
		{100, linux.SOL_SOCKET, linux.SCM_RIGHTS, 24, none},
		{20, linux.SOL_SOCKET, linux.SCM_RIGHTS, 20, none},
		{20, linux.SOL_SOCKET, linux.SCM_RIGHTS, 12, none},
		{20, 77, linux.SCM_RIGHTS, 24, none},
	} {
		control(c.length, c.level, c.kind, c.fd)
		s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), c.room)
		s.call(linux.SYS_SENDMSG, a, at(msgHeader), 0)
		s.call(linux.SYS_READ, b, at(msgRoom), 100)
	}
	for _, room := range []uint64{24, 20, 16, 0} { // with too little room, no descriptor is received
		s.word(msgControl, 20, linux.SOL_SOCKET|linux.SCM_RIGHTS<<32)
		s.add(step{kind: pointers, at: msgControl + 16, args: []uint64{f}})
		s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), 24)
		s.call(linux.SYS_SENDMSG, a, at(msgHeader), 0)
		s.hide(msgControl+16, 8) // the number of the descriptor
		s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), room)
		s.call(linux.SYS_RECVMSG, b, at(msgHeader), 0)
		s.hide(msgControl+16, 8)
	}
	asOnLinux(t, s)
}

// A descriptor that is received without being stored is dropped: its file is closed, and record locks stay.
func TestDroppedDescriptorsAsOnLinux(t *testing.T) {
	const lock = 0x80
	for _, receive := range []func(s *sequence, b uint64){
		func(s *sequence, b uint64) { s.call(linux.SYS_RECVFROM, b, at(msgRoom), 10, 0, 0, 0) },
		func(s *sequence, b uint64) { s.call(linux.SYS_RECVFROM, b, noAddress, 10, 0, 0, 0) },
		func(s *sequence, b uint64) { s.call(linux.SYS_READ, b, at(msgRoom), 10) },
		func(s *sequence, b uint64) {
			s.header(msgHeader, 0, 0, at(msgVector), 1, 0, 0)
			s.call(linux.SYS_RECVMSG, b, at(msgHeader), 0)
		},
		func(s *sequence, b uint64) {
			s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), 19) // no room for a descriptor
			s.call(linux.SYS_RECVMSG, b, at(msgHeader), 0)
		},
	} {
		s := &sequence{}
		a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
		read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
		f := s.file("file", "content")
		again := s.open(linux.SYS_OPENAT, here, s.text("file"), linux.O_RDWR, 0)
		s.word(lock, linux.F_WRLCK, 0, 0, 0)
		s.call(linux.SYS_FCNTL, f, linux.F_SETLK, at(lock))
		for _, passed := range []uint64{f, write} {
			s.word(msgControl, 20, linux.SOL_SOCKET|linux.SCM_RIGHTS<<32)
			s.add(step{kind: pointers, at: msgControl + 16, args: []uint64{passed}})
			s.word(msgVector, at(msgData), 4)
			s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), 24)
			s.call(linux.SYS_SENDMSG, a, at(msgHeader), 0)
			s.hide(msgControl+16, 8) // the number of the descriptor
			receive(s, b)
			s.hide(msgControl+16, 8)
		}
		s.call(linux.SYS_CLOSE, write)
		s.call(linux.SYS_CLOSE, b) // with the messages that are left
		s.call(linux.SYS_READ, read, at(msgRoom), 10)
		s.word(lock, linux.F_WRLCK, 0, 0, 0)
		s.call(linux.SYS_FCNTL, again, linux.F_OFD_GETLK, at(lock))
		s.hide(lock+24, 4) // the holder of the lock
		asOnLinux(t, s)
	}
}

// With MSG_WAITALL, a message with descriptors ends the call, and its descriptors are received.
func TestPassedWithWaitAllAsOnLinux(t *testing.T) {
	s := &sequence{}
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM, 0, at(0))
	_, write := s.pair(linux.SYS_PIPE2, 0, at(0), 0)
	s.call(linux.SYS_SENDTO, a, s.text("ab"), 2, 0, 0, 0)
	s.word(msgControl, 20, linux.SOL_SOCKET|linux.SCM_RIGHTS<<32)
	s.add(step{kind: pointers, at: msgControl + 16, args: []uint64{write}})
	s.word(msgVector, s.text("cd"), 2)
	s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), 24)
	s.call(linux.SYS_SENDMSG, a, at(msgHeader), 0)
	s.hide(msgControl+16, 8)
	s.call(linux.SYS_SENDTO, a, s.text("ef"), 2, 0, 0, 0)
	s.word(msgVector, at(msgRoom), 6)
	s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), 24)
	s.call(linux.SYS_RECVMSG, b, at(msgHeader), linux.MSG_WAITALL)
	s.hide(msgControl+16, 8) // the number of the descriptor
	s.call(linux.SYS_RECVFROM, b, at(msgRoom), 10, linux.MSG_DONTWAIT, 0, 0)
	asOnLinux(t, s)
}

// The name of a socket is cut off at the size of the buffer, and its full size is returned.
func TestNamesAsOnLinux(t *testing.T) {
	s := &sequence{}
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM, 0, at(0))
	listener := s.open(linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_STREAM, 0)
	udp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_DGRAM, 0)
	f := s.file("file", "x")
	const name, size = 0x100, 0x200
	s.put(name, append([]byte{linux.AF_UNIX, 0}, "socket\x00"...)...)
	s.call(linux.SYS_BIND, listener, at(name), 9)
	s.put(name+2, 'O')
	s.call(linux.SYS_BIND, listener, at(name), 9) // has a name
	s.put(name, linux.AF_INET, 0, 0, 0, 127, 0, 0, 1)
	for _, n := range []uint64{0, 1, 2, 15, 129, minus} {
		s.call(linux.SYS_BIND, udp, at(name), n)
		s.call(linux.SYS_CONNECT, udp, at(name), n)
	}
	s.call(linux.SYS_BIND, udp, noAddress, 16)
	s.call(linux.SYS_BIND, none, noAddress, minus)
	s.call(linux.SYS_BIND, f, noAddress, minus)
	s.call(linux.SYS_CONNECT, none, at(name), 16)
	s.call(linux.SYS_CONNECT, f, at(name), 16)
	for _, fd := range []uint64{a, listener, udp, f, none} {
		for _, call := range []int{linux.SYS_GETSOCKNAME, linux.SYS_GETPEERNAME} {
			for _, room := range []uint32{0, 1, 2, 5, 110, 1<<32 - 1} {
				s.put(name, make([]byte, 0x80)...)
				s.int32(size, room)
				s.call(call, fd, at(name), at(size))
				s.hide(name+2, 2) // a failed connect(2) gives the socket a port on Linux
			}
			s.call(call, fd, noAddress, at(size))
			s.call(call, fd, at(name), noAddress)
			s.int32(size, 10)
			s.call(call, fd, noAddress, at(size))
			s.hide(size, 4)
		}
	}
	s.call(linux.SYS_LISTEN, listener, 5)
	s.call(linux.SYS_LISTEN, udp, 5)
	s.call(linux.SYS_LISTEN, f, 5)
	s.call(linux.SYS_LISTEN, none, 5)
	s.call(linux.SYS_ACCEPT, udp, 0, 0)
	s.call(linux.SYS_ACCEPT, a, 0, 0)
	s.call(linux.SYS_ACCEPT4, listener, 0, 0, 1<<20)
	s.call(linux.SYS_ACCEPT, none, 0, 0)
	s.call(linux.SYS_CLOSE, b)
	for _, c := range [][3]uint64{
		{linux.AF_UNIX, 0, 0}, {linux.AF_UNIX, 99, 0}, {linux.AF_UNIX, linux.SOCK_STREAM | 1<<20, 0}, {linux.AF_UNIX, linux.SOCK_STREAM, 99},
		{99, linux.SOCK_STREAM, 0}, {linux.AF_INET, linux.SOCK_STREAM, 17}, {linux.AF_INET, linux.SOCK_SEQPACKET, 0}, {minus, 1, 0},
	} {
		s.call(linux.SYS_SOCKET, c[0], c[1], c[2])
		if c[0] == linux.AF_UNIX {
			s.call(linux.SYS_SOCKETPAIR, c[0], c[1], c[2], at(0))
			s.hide(0, 8) // Linux allocates the numbers first
		}
	}
	s.call(linux.SYS_SOCKETPAIR, linux.AF_INET, linux.SOCK_STREAM, 0, at(0))
	s.hide(0, 8)
	s.call(linux.SYS_SOCKETPAIR, linux.AF_UNIX, linux.SOCK_STREAM, 0, noAddress)
	asOnLinux(t, s)
}

// Options have a size. A buffer that is too small gets the first bytes or an error, as the option does on Linux.
func TestOptionsAsOnLinux(t *testing.T) {
	s := &sequence{}
	tcp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_STREAM, 0)
	udp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_DGRAM, 0)
	unix := s.open(linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_DGRAM, 0)
	f := s.file("file", "x")
	const value, size = 0x100, 0x200
	type option struct{ level, name uint64 }
	options := []option{
		{linux.SOL_SOCKET, linux.SO_TYPE}, {linux.SOL_SOCKET, linux.SO_ERROR}, {linux.SOL_SOCKET, linux.SO_DOMAIN},
		{linux.SOL_SOCKET, linux.SO_PROTOCOL}, {linux.SOL_SOCKET, linux.SO_REUSEADDR}, {linux.SOL_SOCKET, linux.SO_KEEPALIVE},
		{linux.SOL_SOCKET, linux.SO_BROADCAST}, {linux.SOL_SOCKET, linux.SO_LINGER}, {linux.SOL_SOCKET, linux.SO_ACCEPTCONN},
		{linux.SOL_SOCKET, 9999},
	}
	for _, fd := range []uint64{tcp, udp, unix, f, none} {
		for _, o := range options {
			for _, room := range []uint32{0, 1, 4, 8, 100, 1<<32 - 1} {
				s.put(value, make([]byte, 128)...)
				s.int32(size, room)
				s.call(linux.SYS_GETSOCKOPT, fd, o.level, o.name, at(value), at(size))
			}
			s.call(linux.SYS_GETSOCKOPT, fd, o.level, o.name, at(value), noAddress)
			s.int32(size, 4)
			s.call(linux.SYS_GETSOCKOPT, fd, o.level, o.name, noAddress, at(size))
		}
		for _, name := range []uint64{linux.SO_REUSEADDR, linux.SO_KEEPALIVE, linux.SO_BROADCAST, linux.SO_TYPE, 9999} {
			for _, n := range []uint64{0, 1, 3, 4, 8, minus, 1 << 31} {
				if int32(n) < 0 && (fd == f || fd == none) {
					continue // which of two errors is returned differs between releases of Linux
				}
				s.int32(value, 1, 0)
				s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, name, at(value), n)
			}
			s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, name, noAddress, 4)
			s.int32(size, 4)
			s.call(linux.SYS_GETSOCKOPT, fd, linux.SOL_SOCKET, name, at(value), at(size))
		}
		s.word(value, 5, 0)
		s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_RCVTIMEO, at(value), 16)
		s.int32(size, 16)
		s.call(linux.SYS_GETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_RCVTIMEO, at(value), at(size))
		s.word(value, 5, 1_000_000)
		s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_RCVTIMEO, at(value), 16)
		s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_RCVTIMEO, at(value), 15)
		s.int32(value, 1, 7)
		s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_LINGER, at(value), 8)
		s.int32(size, 8)
		s.call(linux.SYS_GETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_LINGER, at(value), at(size))
		s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_LINGER, at(value), 7)
	}
	asOnLinux(t, s)
}

// 127.255.255.255 is a broadcast address: UDP needs SO_BROADCAST, and TCP cannot connect to it.
func TestLoopbackBroadcastAsOnLinux(t *testing.T) {
	s := &sequence{}
	udp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_DGRAM, 0)
	tcp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_STREAM, 0)
	s.put(msgName, linux.AF_INET, 0, 0, 9, 127, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0)
	s.call(linux.SYS_CONNECT, tcp, at(msgName), 16)
	s.call(linux.SYS_SENDTO, udp, at(msgData), 4, 0, at(msgName), 16)
	s.call(linux.SYS_CONNECT, udp, at(msgName), 16)
	s.int32(0x80, 1)
	s.call(linux.SYS_SETSOCKOPT, udp, linux.SOL_SOCKET, linux.SO_BROADCAST, at(0x80), 4)
	s.call(linux.SYS_SENDTO, udp, at(msgData), 4, 0, at(msgName), 16)
	s.call(linux.SYS_CONNECT, udp, at(msgName), 16)
	asOnLinux(t, s)
}
