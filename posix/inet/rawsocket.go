package inet

import (
	"encoding/binary"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
	"loam/wire"
)

// RawSocket is a raw socket (raw(7), ipv6(7)) for the packets of one protocol. It receives packets to
// any local address from its creation on. Binding restricts it to one address.
type RawSocket struct {
	UDPSocket
	raw *stack.RawConn // the same socket as conn, with its type in package stack
}

func newRaw(n *Network, domain, protocol int) (socket.Socket, linux.Errno) {
	s := &RawSocket{UDPSocket: UDPSocket{
		Base: NewBase(domain, linux.SOCK_RAW, protocol),
		net:  n.stack,
	}}
	s.opts = s.begin(stack.UDPOptions{V6Only: domain == linux.AF_INET6, ReuseAddr: true}) // as on Linux, SO_REUSEADDR is on by default, and an AF_INET6 raw socket uses IPv6 only
	s.UDPSocket.open = func(local netip.AddrPort, o stack.UDPOptions) (_ datagramConn, err error) {
		s.raw, err = n.stack.ListenRaw(wire.Protocol(protocol), local.Addr(), o)
		return s.raw, err
	}
	if _, errno := s.bound(); errno != 0 {
		return nil, errno
	}
	return s, 0
}

// Bind implements bind(2). A raw socket may be bound more than once.
func (s *RawSocket) Bind(_ socket.Caller, a socket.Address) linux.Errno {
	local, errno := s.bindName(a, s.IsInet6())
	if errno != 0 {
		return errno
	}
	return file.ToErrno(s.raw.Bind(local.Addr()))
}

func (s *RawSocket) Option(level, name int) ([]byte, linux.Errno) {
	switch {
	case s.isFilter(level, name):
		if errno := s.mayFilter(); errno != 0 {
			return nil, errno
		}
		return s.filterValue(), 0
	case s.isHeaderIncluded(level, name):
		return socket.BoolValue(s.raw.HeaderIncluded()), 0
	case s.isChecksum(level, name):
		return socket.IntValue(s.raw.Checksum()), 0
	}
	return s.UDPSocket.Option(level, name)
}

func (s *RawSocket) SetOption(level, name int, value []byte) linux.Errno {
	switch {
	case s.isFilter(level, name):
		if errno := s.mayFilter(); errno != 0 {
			return errno
		}
		s.setFilter(value)
		return 0
	case s.isHeaderIncluded(level, name):
		n, errno := socket.ParseInt(value)
		if errno == 0 {
			s.raw.SetHeaderIncluded(n != 0)
		}
		return errno
	case s.isChecksum(level, name):
		return s.setChecksum(level, value)
	}
	return s.UDPSocket.SetOption(level, name, value)
}

// isFilter reports whether the option is ICMP_FILTER, or ICMPV6_FILTER on an AF_INET6 socket.
func (s *RawSocket) isFilter(level, name int) bool {
	if s.IsInet6() {
		return level == linux.IPPROTO_ICMPV6 && name == linux.ICMPV6_FILTER
	}
	return level == linux.SOL_RAW && name == linux.ICMP_FILTER
}

func (s *RawSocket) isHeaderIncluded(level, name int) bool {
	if s.IsInet6() {
		return (level == linux.IPPROTO_IPV6 || level == linux.SOL_RAW) && name == linux.IPV6_HDRINCL
	}
	return level == linux.IPPROTO_IP && name == linux.IP_HDRINCL
}

func (s *RawSocket) isChecksum(level, name int) bool {
	return s.IsInet6() && (level == linux.IPPROTO_IPV6 || level == linux.SOL_RAW) && name == linux.IPV6_CHECKSUM
}

// mayFilter returns an error unless the socket's protocol is ICMP or ICMPv6: other sockets have no filter for ICMP types.
func (s *RawSocket) mayFilter() linux.Errno {
	if s.Protocol != pingProtocol(s.Domain) {
		return linux.EOPNOTSUPP
	}
	return 0
}

// filterValue returns a struct icmp_filter or icmp6_filter, in which a bit is set for each ICMP type that is blocked.
func (s *RawSocket) filterValue() []byte {
	types := s.raw.BlockedTypes()
	words := types[:]
	if !s.IsInet6() {
		words = words[:1]
	}
	var b []byte
	for _, w := range words {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return b
}

// setFilter overwrites the first len(value) bytes of the filter.
func (s *RawSocket) setFilter(value []byte) {
	b := s.filterValue()
	copy(b, value)
	var types [8]uint32
	for i := 0; i < len(b)/4; i++ {
		types[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	s.raw.BlockTypes(types)
}

// setChecksum implements IPV6_CHECKSUM. Errors: EINVAL for an odd offset, and for an ICMPv6 socket at
// level IPPROTO_IPV6 (RFC 3542 section 3.1).
func (s *RawSocket) setChecksum(level int, value []byte) linux.Errno {
	n, errno := socket.ParseInt(value)
	switch {
	case errno != 0:
		return errno
	case s.Protocol == linux.IPPROTO_ICMPV6 && level == linux.IPPROTO_IPV6, n > 0 && n%2 != 0:
		return linux.EINVAL
	}
	s.raw.SetChecksum(max(n, -1))
	return 0
}
