package posix

import (
	"math"

	"loam/abi/linux"
	"loam/stack"
)

// Options of UDP sockets: socket(7), ip(7), udp(7).

type udpOpts = stack.UDPOptions

const defaultUDPBuffer = 212992 // net.core.rmem_default

// udpIntOptions are the int options that are stored in a socket of the stack. A multicast TTL of 0,
// which would keep datagrams on this host, becomes 1.
var udpIntOptions = map[optionName]intOption[udpOpts]{
	{linux.SOL_SOCKET, linux.SO_BROADCAST}:   flag(func(o *udpOpts) *bool { return &o.Broadcast }),
	{linux.SOL_SOCKET, linux.SO_REUSEADDR}:   flag(func(o *udpOpts) *bool { return &o.ReuseAddr }),
	{linux.SOL_SOCKET, linux.SO_REUSEPORT}:   flag(func(o *udpOpts) *bool { return &o.ReusePort }),
	{linux.SOL_SOCKET, linux.SO_RCVBUF}:      buffer(func(o *udpOpts) *int { return &o.ReceiveBuffer }, defaultUDPBuffer),
	{linux.SOL_SOCKET, linux.SO_RCVBUFFORCE}: buffer(func(o *udpOpts) *int { return &o.ReceiveBuffer }, defaultUDPBuffer),
	{linux.SOL_SOCKET, linux.SO_SNDBUF}:      buffer(func(o *udpOpts) *int { return &o.SendBuffer }, defaultUDPBuffer),
	{linux.SOL_SOCKET, linux.SO_SNDBUFFORCE}: buffer(func(o *udpOpts) *int { return &o.SendBuffer }, defaultUDPBuffer),

	{linux.IPPROTO_IP, linux.IP_TTL}:           octet(func(o *udpOpts) *uint8 { return &o.TTL }, 1, 64),
	{linux.IPPROTO_IP, linux.IP_TOS}:           octet(func(o *udpOpts) *uint8 { return &o.TOS }, 0, 0),
	{linux.IPPROTO_IP, linux.IP_MULTICAST_TTL}: octet(func(o *udpOpts) *uint8 { return &o.GroupTTL }, 0, 1),
	{linux.IPPROTO_IP, linux.IP_MULTICAST_ALL}: truth(func(o *udpOpts) *bool { return &o.AllGroups }),

	{linux.IPPROTO_IP, linux.IP_MULTICAST_LOOP}:     unless(func(o *udpOpts) *bool { return &o.NoLoop }),
	{linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_LOOP}: strictly(unless(func(o *udpOpts) *bool { return &o.NoLoop6 })),

	recvErr:         flag(func(o *udpOpts) *bool { return &o.QueueErrors }),
	recvErr6:        flag(func(o *udpOpts) *bool { return &o.QueueErrors6 }),
	recvExtensions:  truth(func(o *udpOpts) *bool { return &o.ReportExtensions }),
	recvExtensions6: truth(func(o *udpOpts) *bool { return &o.ReportExtensions6 }),
	mtuDiscover:     discovery(func(o *udpOpts) *stack.Discovery { return &o.Discovery }),
	mtuDiscover6:    discovery(func(o *udpOpts) *stack.Discovery { return &o.Discovery6 }),
	v6OnlyOption:    flag(func(o *udpOpts) *bool { return &o.V6Only }),
	{linux.IPPROTO_IPV6, linux.IPV6_UNICAST_HOPS}:   octet(func(o *udpOpts) *uint8 { return &o.HopLimit }, 1, 64),
	{linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_HOPS}: octet(func(o *udpOpts) *uint8 { return &o.GroupHops }, 0, 1),
	{linux.IPPROTO_IPV6, linux.IPV6_RECVPATHMTU}:    flag(func(o *udpOpts) *bool { return &o.ReportPathMTU }),
	{linux.IPPROTO_IPV6, linux.IPV6_DONTFRAG}:       flag(func(o *udpOpts) *bool { return &o.Whole6 }),
	{linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_ALL}:  flag(func(o *udpOpts) *bool { return &o.AllGroups6 }),
	{linux.IPPROTO_IPV6, linux.IPV6_TCLASS}:         octet(func(o *udpOpts) *uint8 { return &o.TrafficClass }, 0, 0),
}

// groOption allows the stack to return several datagrams of one sender in one read. It never does: a
// read is as cheap as a function call, so there is little to gain.
var groOption = optionName{linux.IPPROTO_UDP, linux.UDP_GRO}

// udpHarmless are options that a program can set and read but that have no effect.
var udpHarmless = map[optionName]bool{
	{linux.SOL_SOCKET, linux.SO_KEEPALIVE}:            true,
	{linux.SOL_SOCKET, linux.SO_LINGER}:               true,
	{linux.IPPROTO_IP, linux.IP_FREEBIND}:             true,
	{linux.IPPROTO_IP, linux.IP_BIND_ADDRESS_NO_PORT}: true,
}

// wanted returns the field of an option that requests a control message, or nil.
func (s *udpSocket) wanted(key optionName) *bool {
	switch key {
	case optionName{linux.IPPROTO_IP, linux.IP_PKTINFO}:
		return &s.wants.packetInfo
	case optionName{linux.IPPROTO_IP, linux.IP_RECVTTL}:
		return &s.wants.ttl
	case optionName{linux.IPPROTO_IP, linux.IP_RECVTOS}:
		return &s.wants.tos
	case optionName{linux.IPPROTO_IP, linux.IP_ORIGDSTADDR}:
		return &s.wants.to
	case optionName{linux.IPPROTO_IPV6, linux.IPV6_ORIGDSTADDR}:
		return &s.wants.to6
	case optionName{linux.SOL_SOCKET, linux.SO_TIMESTAMP}:
		return &s.wants.time
	case optionName{linux.SOL_SOCKET, linux.SO_TIMESTAMPNS}:
		return &s.wants.nanoseconds
	case optionName{linux.IPPROTO_IPV6, linux.IPV6_RECVPKTINFO}:
		return &s.wants.packetInfo6
	case optionName{linux.IPPROTO_IPV6, linux.IPV6_RECVHOPLIMIT}:
		return &s.wants.hopLimit
	case optionName{linux.IPPROTO_IPV6, linux.IPV6_RECVTCLASS}:
		return &s.wants.trafficClass
	}
	return nil
}

func (s *udpSocket) option(level, name int) ([]byte, Errno) {
	key := optionName{level, name}
	if s.wrongLevel(level) {
		return nil, linux.ENOPROTOOPT
	}
	if o, ok := udpIntOptions[key]; ok {
		opts := s.options()
		return intValue(o.get(&opts)), 0
	}
	if udpHarmless[key] || harmless6[key] {
		return s.recall(key), 0
	}
	if w := s.wanted(key); w != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return boolValue(*w), 0
	}
	switch {
	case key == pathMTU || key == pathMTU6:
		return pathMTUValue(s.net, s.remote())
	case key == pathInfo6:
		return pathInfoValue(s.net, s.remote())
	case level == linux.IPPROTO_IPV6 && name == linux.IPV6_MULTICAST_IF:
		s.mu.Lock()
		defer s.mu.Unlock()
		return intValue(s.groupIndex), 0
	case level == linux.IPPROTO_IP && name == linux.IP_MULTICAST_IF:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.groupsBy.address(), 0
	case level == linux.IPPROTO_UDP && name == linux.UDP_SEGMENT && s.isUDP():
		s.mu.Lock()
		defer s.mu.Unlock()
		return intValue(s.segment), 0
	case key == groOption && s.isUDP():
		return s.recall(key), 0
	case level == linux.SOL_SOCKET && name == linux.SO_BINDTODEVICE:
		return s.deviceName(), 0
	case level == linux.SOL_SOCKET && name == linux.SO_ACCEPTCONN:
		return boolValue(false), 0
	case level == linux.SOL_SOCKET:
		return s.socketBase.option(name)
	}
	return nil, linux.ENOPROTOOPT
}

func (s *udpSocket) setOption(level, name int, value []byte) Errno {
	key := optionName{level, name}
	if s.wrongLevel(level) {
		return linux.ENOPROTOOPT
	}
	if key == v6OnlyOption && s.conn.Load() != nil {
		return linux.EINVAL
	}
	if o, ok := udpIntOptions[key]; ok {
		n, errno := parseInt(value)
		if errno != 0 {
			return errno
		}
		bad := s.setOptions(func(opts *udpOpts) { errno = o.set(opts, n) })
		if errno != 0 {
			return errno
		}
		return bad
	}
	if udpHarmless[key] || harmless6[key] {
		return s.remember(key, value)
	}
	if w := s.wanted(key); w != nil {
		n, errno := parseInt(value)
		if errno == 0 {
			s.mu.Lock()
			if level == linux.SOL_SOCKET { // at most one kind of timestamp
				s.wants.time, s.wants.nanoseconds = false, false
			}
			*w = n != 0
			s.mu.Unlock()
		}
		return errno
	}
	switch {
	case sourceOptions[key] != nil:
		return s.sourceOption(key, value)
	case isFilterOption(level, name):
		return s.setGroupFilter(level, name, value)
	case level != linux.SOL_SOCKET && (name == linux.MCAST_JOIN_GROUP || name == linux.MCAST_LEAVE_GROUP):
		m, errno := s.groupRequest(level, value)
		return s.member(m, errno, name == linux.MCAST_JOIN_GROUP)
	case level == linux.IPPROTO_IP && (name == linux.IP_ADD_MEMBERSHIP || name == linux.IP_DROP_MEMBERSHIP):
		m, errno := s.membership(value)
		return s.member(m, errno, name == linux.IP_ADD_MEMBERSHIP)
	case level == linux.IPPROTO_IPV6 && (name == linux.IPV6_ADD_MEMBERSHIP || name == linux.IPV6_DROP_MEMBERSHIP):
		m, errno := s.membership6(value)
		return s.member(m, errno, name == linux.IPV6_ADD_MEMBERSHIP)
	case level == linux.IPPROTO_IPV6 && name == linux.IPV6_MULTICAST_IF:
		return s.setMulticastInterface6(value)
	case level == linux.IPPROTO_IP && name == linux.IP_MULTICAST_IF:
		return s.setMulticastInterface4(value)
	case key == pathMTU6:
		return s.setMaxPacket(value)
	case level == linux.IPPROTO_UDP && name == linux.UDP_SEGMENT && s.isUDP():
		return s.setSegment(value)
	case key == groOption && s.isUDP():
		n, errno := parseInt(value)
		if errno == 0 {
			errno = s.remember(key, boolValue(n != 0))
		}
		return errno
	case level == linux.SOL_SOCKET && name == linux.SO_BINDTODEVICE:
		return s.bindToDevice(value)
	case level == linux.SOL_SOCKET:
		if errno, known := s.filterOption(name, value); known {
			return errno
		}
		return s.socketBase.setOption(name, value)
	}
	return linux.ENOPROTOOPT
}

// setSegment implements UDP_SEGMENT: the length of the datagrams into which a send is split; 0: no
// splitting.
func (s *udpSocket) setSegment(value []byte) Errno {
	n, errno := parseInt(value)
	if errno == 0 && (n < 0 || n > math.MaxUint16) {
		errno = linux.EINVAL
	}
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	s.segment = n
	s.mu.Unlock()
	return 0
}
