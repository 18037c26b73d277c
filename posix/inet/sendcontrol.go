package inet

import (
	"encoding/binary"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
)

// Control messages of outgoing datagrams (ip(7), RFC 3542 section 6): source address, interface, hop
// limit, traffic class, and segment size.

// sendBy parses the control messages of a send call. It ignores messages of a level that is not the socket's, as Linux does.
// Errors: EINVAL for an unknown or malformed message, ENODEV.
func (s *UDPSocket) sendBy(control []socket.Control) (by stack.UDPSend, errno linux.Errno) {
	for _, c := range control {
		switch {
		case c.Level == linux.IPPROTO_UDP && s.isUDP():
			if c.Type != linux.UDP_SEGMENT || len(c.Data) != 2 {
				return by, linux.EINVAL
			}
			by.Segment = int(binary.NativeEndian.Uint16(c.Data))
		case c.Level == linux.IPPROTO_IP:
			errno = s.sendBy4(&by, c)
		case c.Level == linux.IPPROTO_IPV6 && s.IsInet6():
			errno = s.sendBy6(&by, c)
		}
		if errno != 0 {
			return by, errno
		}
	}
	return by, 0
}

// sendBy4 parses a control message of level IPPROTO_IP.
func (s *UDPSocket) sendBy4(by *stack.UDPSend, c socket.Control) linux.Errno {
	switch c.Type {
	case linux.IP_PKTINFO: // struct in_pktinfo: interface index, source address, destination address (ignored)
		if len(c.Data) != 12 {
			return linux.EINVAL
		}
		return s.sendFrom(by, netip.AddrFrom4([4]byte(c.Data[4:])), binary.NativeEndian.Uint32(c.Data))
	case linux.IP_TTL:
		return setTTL(by, c, 1)
	case linux.IP_TOS:
		if len(c.Data) == 1 {
			by.TOS, by.HasTOS = c.Data[0], true
			return 0
		}
		return setTOS(by, c, 0)
	}
	return linux.EINVAL
}

// sendBy6 parses a control message of level IPPROTO_IPV6. The value -1 selects the value
// that the socket option has set.
func (s *UDPSocket) sendBy6(by *stack.UDPSend, c socket.Control) linux.Errno {
	switch c.Type {
	case linux.IPV6_PKTINFO:
		if len(c.Data) != 20 {
			return linux.EINVAL
		}
		return s.sendFrom(by, netip.AddrFrom16([16]byte(c.Data)), binary.NativeEndian.Uint32(c.Data[16:]))
	case linux.IPV6_HOPLIMIT:
		return setTTL(by, c, -1)
	case linux.IPV6_TCLASS:
		return setTOS(by, c, -1)
	}
	return linux.EINVAL
}

// sendFrom sets the source address of a datagram unless source is unspecified, and its interface unless index is 0.
func (s *UDPSocket) sendFrom(by *stack.UDPSend, source netip.Addr, index uint32) linux.Errno {
	if !source.Unmap().IsUnspecified() {
		by.Source = source
	}
	if index == 0 {
		return 0
	}
	by.On = netdevice.ByIndex(s.net, int(index))
	if by.On == nil {
		return linux.ENODEV
	}
	return 0
}

func setTTL(by *stack.UDPSend, c socket.Control, least int) linux.Errno {
	n, errno := octetFrom(c, least)
	if errno == 0 && n > 0 {
		by.TTL = uint8(n)
	}
	return errno
}

func setTOS(by *stack.UDPSend, c socket.Control, least int) linux.Errno {
	n, errno := octetFrom(c, least)
	if errno == 0 && n >= 0 {
		by.TOS, by.HasTOS = uint8(n), true
	}
	return errno
}

// octetFrom returns the int value of a control message. Errors: EINVAL for a value below
// the minimum, least, or above 255.
func octetFrom(c socket.Control, least int) (int, linux.Errno) {
	n, errno := socket.ParseInt(c.Data)
	if errno == 0 && (n < least || n > 255) {
		errno = linux.EINVAL
	}
	return n, errno
}
