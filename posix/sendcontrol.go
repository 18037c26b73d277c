package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/stack"
)

// Control messages of datagrams that are sent (ip(7), RFC 3542 section 6): from which
// address, by which interface, how far, as which kind of traffic, and cut into which pieces.

// sendBy reads them. Messages of a level that is not the socket's are passed over, as by
// Linux. Errors: EINVAL for one that is not known or not well formed, ENODEV.
func (s *udpSocket) sendBy(control []Control) (by stack.UDPSend, errno Errno) {
	for _, c := range control {
		switch {
		case c.Level == syscall.IPPROTO_UDP && s.isUDP():
			if c.Type != udpSegment || len(c.Data) != 2 {
				return by, syscall.EINVAL
			}
			by.Segment = int(binary.NativeEndian.Uint16(c.Data))
		case c.Level == syscall.IPPROTO_IP:
			errno = s.sendBy4(&by, c)
		case c.Level == syscall.IPPROTO_IPV6 && s.isInet6():
			errno = s.sendBy6(&by, c)
		}
		if errno != 0 {
			return by, errno
		}
	}
	return by, 0
}

// sendBy4 reads a message of IPPROTO_IP.
func (s *udpSocket) sendBy4(by *stack.UDPSend, c Control) Errno {
	switch c.Type {
	case syscall.IP_PKTINFO: // struct in_pktinfo: index, source, and what is not heard
		if len(c.Data) != 12 {
			return syscall.EINVAL
		}
		return s.sendFrom(by, netip.AddrFrom4([4]byte(c.Data[4:])), binary.NativeEndian.Uint32(c.Data))
	case syscall.IP_TTL:
		return setTTL(by, c, 1)
	case syscall.IP_TOS:
		if len(c.Data) == 1 {
			by.TOS, by.HasTOS = c.Data[0], true
			return 0
		}
		return setTOS(by, c, 0)
	}
	return syscall.EINVAL
}

// sendBy6 reads a message of IPPROTO_IPV6; -1 in one is the socket's own value.
func (s *udpSocket) sendBy6(by *stack.UDPSend, c Control) Errno {
	switch c.Type {
	case ipv6PktInfo:
		if len(c.Data) != 20 {
			return syscall.EINVAL
		}
		return s.sendFrom(by, netip.AddrFrom16([16]byte(c.Data)), binary.NativeEndian.Uint32(c.Data[16:]))
	case ipv6HopLimit:
		return setTTL(by, c, -1)
	case ipv6TClass:
		return setTOS(by, c, -1)
	}
	return syscall.EINVAL
}

// sendFrom sets the source, if it is an address, and the interface, if it is one.
func (s *udpSocket) sendFrom(by *stack.UDPSend, source netip.Addr, index uint32) Errno {
	if !source.Unmap().IsUnspecified() {
		by.Source = source
	}
	if index == 0 {
		return 0
	}
	by.On = interfaceByIndex(s.net, int(index))
	if by.On == nil {
		return syscall.ENODEV
	}
	return 0
}

func setTTL(by *stack.UDPSend, c Control, least int) Errno {
	n, errno := octetFrom(c, least)
	if errno == 0 && n > 0 {
		by.TTL = uint8(n)
	}
	return errno
}

func setTOS(by *stack.UDPSend, c Control, least int) Errno {
	n, errno := octetFrom(c, least)
	if errno == 0 && n >= 0 {
		by.TOS, by.HasTOS = uint8(n), true
	}
	return errno
}

// octetFrom is the value of a control message that has to be from least to 255.
func octetFrom(c Control, least int) (int, Errno) {
	n, errno := parseInt(c.Data)
	if errno == 0 && (n < least || n > 255) {
		errno = syscall.EINVAL
	}
	return n, errno
}
