package call

import (
	"slices"
	"testing"

	"loam/abi/linux"
)

// controlMessage encodes a control message, padded to the beginning of the next one.
func controlMessage(level, kind uint32, data ...byte) []byte {
	b := le.AppendUint64(nil, uint64(linux.SizeofCmsghdr+len(data)))
	b = append(le.AppendUint32(le.AppendUint32(b, level), kind), data...)
	return append(b, make([]byte, linux.AlignCmsg(len(b))-len(b))...)
}

// Control messages of level SOL_SOCKET are checked by every socket: an unknown type is an error. Messages of other levels belong
// to the protocol.
func TestControlTypesAsOnLinux(t *testing.T) {
	s := &sequence{}
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	udp, name := s.boundUDP()
	s.call(linux.SYS_CONNECT, udp, name, 16) // to itself
	s.put(msgData, []byte("data")...)
	ttl := []byte{9, 0, 0, 0}
	lists := [][]byte{
		controlMessage(linux.SOL_SOCKET, 99, ttl...),
		controlMessage(linux.SOL_SOCKET, 0, ttl...),
		controlMessage(linux.SOL_SOCKET, 61, make([]byte, 8)...), // SCM_TXTIME, without SO_TXTIME
		controlMessage(linux.SOL_SOCKET, linux.SO_TIMESTAMPING, 2, 0, 0, 0),
		controlMessage(linux.SOL_SOCKET, linux.SO_TIMESTAMPING, 2, 0, 0),
		controlMessage(linux.SOL_SOCKET, linux.SO_TIMESTAMPING, make([]byte, 8)...),
		controlMessage(linux.SOL_SOCKET, linux.SO_MARK, 0, 0, 0, 0),
		controlMessage(linux.SOL_SOCKET, linux.SO_MARK, make([]byte, 8)...),
		controlMessage(linux.SOL_SOCKET, linux.SCM_CREDENTIALS, ttl...),
		controlMessage(linux.SOL_SOCKET, linux.SCM_RIGHTS),
		controlMessage(77, 1, ttl...),
		controlMessage(linux.IPPROTO_TCP, 1, ttl...),
		slices.Concat(controlMessage(77, 1, ttl...), controlMessage(linux.SOL_SOCKET, 99, ttl...)),
		slices.Concat(controlMessage(linux.SOL_SOCKET, linux.SCM_RIGHTS), controlMessage(linux.SOL_SOCKET, 99)),
	}
	for _, list := range lists {
		for _, fd := range []uint64{a, udp} {
			s.put(msgControl, append(list, make([]byte, 64)...)...)
			s.word(msgVector, at(msgData), 4)
			s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), uint64(len(list)))
			s.call(linux.SYS_SENDMSG, fd, at(msgHeader), 0)
		}
		s.call(linux.SYS_READ, b, at(msgRoom), 100)
	}
	asOnLinux(t, s)
}

// udpName is the offset of the address of a socket that boundUDP returns.
const udpName = 0x600

// boundUDP opens a UDP socket and binds it to a port of 127.0.0.1 that the system selects. It also returns the address of its
// name in memory. The port is hidden when memory is compared, because the systems select different ports. The socket waits up to
// ten seconds for a datagram.
func (s *sequence) boundUDP() (fd, name uint64) {
	fd = s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_DGRAM, 0)
	s.word(udpName, 10, 0)
	s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_RCVTIMEO, at(udpName), 16)
	s.put(udpName, linux.AF_INET, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	s.call(linux.SYS_BIND, fd, at(udpName), 16)
	s.int32(udpName+0x20, 16)
	s.call(linux.SYS_GETSOCKNAME, fd, at(udpName), at(udpName+0x20))
	s.mask(udpName+2, 2)
	return fd, at(udpName)
}

// The control messages of a datagram are stored as far as the caller's buffer has room. MSG_CTRUNC reports that some did not fit.
func TestTruncatedControlAsOnLinux(t *testing.T) {
	s := &sequence{}
	udp, name := s.boundUDP()
	s.int32(0x80, 1)
	for _, option := range []uint64{linux.IP_PKTINFO, linux.IP_RECVTTL, linux.IP_RECVTOS} {
		s.call(linux.SYS_SETSOCKOPT, udp, linux.IPPROTO_IP, option, at(0x80), 4)
	}
	s.put(msgData, []byte("data")...)
	for _, room := range []uint64{0, 1, 15, 16, 17, 27, 28, 31, 32, 47, 48, 51, 52, 55, 56, 72, 73, 80, 100, 256} {
		s.call(linux.SYS_SENDTO, udp, at(msgData), 4, 0, name, 16)
		s.put(msgControl, make([]byte, 256)...)
		s.word(msgVector, at(msgRoom), 4)
		s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), room)
		s.call(linux.SYS_RECVMSG, udp, at(msgHeader), 0)
	}
	asOnLinux(t, s)
}

// Credentials of the sender (SO_PASSCRED) come before descriptors. IDs are hidden: they differ between the systems.
func TestCredentialsAsOnLinux(t *testing.T) {
	s := &sequence{}
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	f := s.file("file", "content")
	s.int32(0x80, 1)
	s.call(linux.SYS_SETSOCKOPT, b, linux.SOL_SOCKET, linux.SO_PASSCRED, at(0x80), 4)
	s.put(msgData, []byte("data")...)
	for _, room := range []uint64{0, 15, 16, 20, 27, 28, 32, 48, 52, 56, 100} {
		for _, passes := range []bool{false, true} {
			s.put(msgControl, controlMessage(linux.SOL_SOCKET, linux.SCM_RIGHTS, 0, 0, 0, 0)...)
			s.add(step{kind: pointers, at: msgControl + 16, args: []uint64{f}})
			s.word(msgVector, at(msgData), 4)
			size := uint64(0)
			if passes {
				size = 24
			}
			s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), size)
			s.call(linux.SYS_SENDMSG, a, at(msgHeader), 0)
			s.put(msgControl, make([]byte, 128)...)
			s.word(msgVector, at(msgRoom), 4)
			s.header(msgHeader, 0, 0, at(msgVector), 1, at(msgControl), room)
			s.call(linux.SYS_RECVMSG, b, at(msgHeader), 0)
			s.hide(msgControl+16, 12)
			s.hide(msgControl+48, 4)
		}
	}
	asOnLinux(t, s)
}

// The address of the sender is cut off at the size of the buffer, and its full size is returned.
func TestSenderAddressAsOnLinux(t *testing.T) {
	s := &sequence{}
	udp, name := s.boundUDP()
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	const from, size = 0x700, 0x780
	receive := func(fd uint64, room uint32, addr, sizeAddr uint64) {
		s.put(from, slices.Repeat([]byte{0xee}, 64)...)
		s.int32(size, room)
		s.call(linux.SYS_RECVFROM, fd, at(msgRoom), 4, 0, addr, sizeAddr)
		s.hide(from+2, 2) // the port
	}
	s.put(msgData, []byte("data")...)
	for _, room := range []uint32{0, 1, 2, 7, 8, 16, 28, 64, 1<<32 - 1, 1 << 31} {
		s.call(linux.SYS_SENDTO, udp, at(msgData), 4, 0, name, 16)
		receive(udp, room, at(from), at(size))
		s.call(linux.SYS_SENDTO, a, at(msgData), 4, 0, 0, 0)
		receive(b, room, at(from), at(size))
		s.call(linux.SYS_SENDTO, udp, at(msgData), 4, 0, name, 16)
		s.put(from, slices.Repeat([]byte{0xee}, 64)...)
		s.word(msgVector, at(msgRoom), 4)
		s.header(msgHeader, at(from), uint64(room), at(msgVector), 1, 0, 0)
		s.call(linux.SYS_RECVMSG, udp, at(msgHeader), 0)
		s.hide(from+2, 2)
	}
	for _, bad := range [][2]uint64{{noAddress, at(size)}, {at(from), noAddress}, {0, noAddress}, {at(from), 0}} {
		s.call(linux.SYS_SENDTO, udp, at(msgData), 4, 0, name, 16)
		receive(udp, 16, bad[0], bad[1])
		s.hide(size, 4)
	}
	for _, n := range []uint64{0, 1, 2, 15, 16, 128, 129, minus} {
		s.call(linux.SYS_SENDTO, udp, at(msgData), 4, 0, name, n)
	}
	asOnLinux(t, s)
}

// A descriptor for which the caller has no room is closed: by recvmsg(2) if its control message does not fit or cannot be
// stored, and by recvfrom(2), which has no control messages.
func TestDescriptorsWithoutRoom(t *testing.T) {
	c, m := newCaller(t, 1<<12)
	must(t)(do(c, linux.SYS_SOCKETPAIR, linux.AF_UNIX, linux.SOCK_DGRAM, 0, base))
	a, b := uint64(le.Uint32(m.bytes)), uint64(le.Uint32(m.bytes[4:]))
	const header, vector, control, data = 0x100, 0x180, 0x200, 0x300
	before := len(c.Process.Descriptors())
	prepare := func(addr, room uint64) {
		for i, v := range []uint64{0, 0, base + vector, 1, addr, room, 0} {
			le.PutUint64(m.bytes[header+8*i:], v)
		}
		le.PutUint64(m.bytes[vector:], base+data)
		le.PutUint64(m.bytes[vector+8:], 4)
		fds := le.AppendUint32(le.AppendUint32(nil, uint32(a)), uint32(b))
		copy(m.bytes[control:], controlMessage(linux.SOL_SOCKET, linux.SCM_RIGHTS, fds...))
	}
	for _, try := range []struct {
		addr, room uint64
		passed     int
		errno      linux.Errno
	}{
		{0, 0, 0, 0}, {base + control, 0, 0, 0}, {base + control, 19, 0, 0}, {base + control, 20, 1, 0}, {base + control, 23, 1, 0},
		{base + control, 24, 2, 0}, {noAddress, 24, 0, linux.EFAULT},
	} {
		prepare(base+control, 24)
		must(t)(do(c, linux.SYS_SENDMSG, a, base+header, 0))
		prepare(try.addr, try.room)
		if _, errno := do(c, linux.SYS_RECVMSG, b, base+header, 0); errno != try.errno {
			t.Errorf("%d bytes at %#x: %v, want %v", try.room, try.addr, errno, try.errno)
		}
		all := c.Process.Descriptors()
		if len(all) != before+try.passed {
			t.Errorf("%d bytes at %#x: %d descriptors are open, want %d and %d", try.room, try.addr, len(all), before, try.passed)
		}
		for _, fd := range all[before:] {
			c.Process.Close(fd)
		}
	}
	prepare(base+control, 24)
	must(t)(do(c, linux.SYS_SENDMSG, a, base+header, 0))
	must(t)(do(c, linux.SYS_RECVFROM, b, base+data, 4))
	if all := c.Process.Descriptors(); len(all) != before {
		t.Errorf("recvfrom leaves %d descriptors, want %d", len(all), before)
	}
}
