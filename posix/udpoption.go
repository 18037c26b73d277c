package posix

import (
	"math"
	"syscall"

	"loam/stack"
)

// Options of UDP sockets: socket(7), ip(7), udp(7).

type udpOpts = stack.UDPOptions

const defaultUDPBuffer = 212992 // net.core.rmem_default

// udpIntOptions are the options that are kept with a socket of the stack. A group's limit
// of 0, which would keep datagrams on this host, is 1 here.
var udpIntOptions = map[optionName]intOption[udpOpts]{
	{syscall.SOL_SOCKET, syscall.SO_BROADCAST}: flag(func(o *udpOpts) *bool { return &o.Broadcast }),
	{syscall.SOL_SOCKET, syscall.SO_REUSEADDR}: flag(func(o *udpOpts) *bool { return &o.ReuseAddr }),
	{syscall.SOL_SOCKET, soReusePort}:          flag(func(o *udpOpts) *bool { return &o.ReusePort }),
	{syscall.SOL_SOCKET, syscall.SO_RCVBUF}:    buffer(func(o *udpOpts) *int { return &o.ReceiveBuffer }, defaultUDPBuffer),
	{syscall.SOL_SOCKET, soRcvBufForce}:        buffer(func(o *udpOpts) *int { return &o.ReceiveBuffer }, defaultUDPBuffer),
	{syscall.SOL_SOCKET, syscall.SO_SNDBUF}:    buffer(func(o *udpOpts) *int { return &o.SendBuffer }, defaultUDPBuffer),
	{syscall.SOL_SOCKET, soSndBufForce}:        buffer(func(o *udpOpts) *int { return &o.SendBuffer }, defaultUDPBuffer),

	{syscall.IPPROTO_IP, syscall.IP_TTL}:           octet(func(o *udpOpts) *uint8 { return &o.TTL }, 1, 64),
	{syscall.IPPROTO_IP, syscall.IP_TOS}:           octet(func(o *udpOpts) *uint8 { return &o.TOS }, 0, 0),
	{syscall.IPPROTO_IP, syscall.IP_MULTICAST_TTL}: octet(func(o *udpOpts) *uint8 { return &o.GroupTTL }, 0, 1),
	{syscall.IPPROTO_IP, ipMulticastAll}:           truth(func(o *udpOpts) *bool { return &o.AllGroups }),

	{syscall.IPPROTO_IP, syscall.IP_MULTICAST_LOOP}:     unless(func(o *udpOpts) *bool { return &o.NoLoop }),
	{syscall.IPPROTO_IPV6, syscall.IPV6_MULTICAST_LOOP}: strictly(unless(func(o *udpOpts) *bool { return &o.NoLoop6 })),

	recvErr:         flag(func(o *udpOpts) *bool { return &o.QueueErrors }),
	recvErr6:        flag(func(o *udpOpts) *bool { return &o.QueueErrors6 }),
	recvExtensions:  truth(func(o *udpOpts) *bool { return &o.TellExtensions }),
	recvExtensions6: truth(func(o *udpOpts) *bool { return &o.TellExtensions6 }),
	mtuDiscover:     discovery(func(o *udpOpts) *stack.Discovery { return &o.Discovery }),
	mtuDiscover6:    discovery(func(o *udpOpts) *stack.Discovery { return &o.Discovery6 }),
	v6OnlyOption:    flag(func(o *udpOpts) *bool { return &o.V6Only }),
	{syscall.IPPROTO_IPV6, syscall.IPV6_UNICAST_HOPS}:   octet(func(o *udpOpts) *uint8 { return &o.HopLimit }, 1, 64),
	{syscall.IPPROTO_IPV6, syscall.IPV6_MULTICAST_HOPS}: octet(func(o *udpOpts) *uint8 { return &o.GroupHops }, 0, 1),
	{syscall.IPPROTO_IPV6, ipv6RecvPathMTU}:             flag(func(o *udpOpts) *bool { return &o.TellPathMTU }),
	{syscall.IPPROTO_IPV6, ipv6DontFrag}:                flag(func(o *udpOpts) *bool { return &o.Whole6 }),
	{syscall.IPPROTO_IPV6, ipv6MulticastAll}:            flag(func(o *udpOpts) *bool { return &o.AllGroups6 }),
	{syscall.IPPROTO_IPV6, ipv6TClass}:                  octet(func(o *udpOpts) *uint8 { return &o.TrafficClass }, 0, 0),
}

// Options that have a socket hear groups that others have joined (linux/in.h, linux/in6.h).
const (
	ipMulticastAll   = 49
	ipv6MulticastAll = 29
)

// groOption allows datagrams of one sender to be read several at a time. They never are: a call that reads
// costs no more than a function's, so that there is little to save.
var groOption = optionName{syscall.IPPROTO_UDP, udpGRO}

// udpHarmless are options that a program may set and read back although they
// change nothing here.
var udpHarmless = map[optionName]bool{
	{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}: true,
	{syscall.SOL_SOCKET, syscall.SO_LINGER}:    true,
	{syscall.IPPROTO_IP, syscall.IP_FREEBIND}:  true,
	{syscall.IPPROTO_IP, ipBindAddressNoPort}:  true,
}

// wanted is the field of an option that asks for a control message, or nil.
func (s *udpSocket) wanted(key optionName) *bool {
	switch key {
	case optionName{syscall.IPPROTO_IP, syscall.IP_PKTINFO}:
		return &s.wants.packetInfo
	case optionName{syscall.IPPROTO_IP, syscall.IP_RECVTTL}:
		return &s.wants.ttl
	case optionName{syscall.IPPROTO_IP, syscall.IP_RECVTOS}:
		return &s.wants.tos
	case optionName{syscall.IPPROTO_IP, ipOrigDstAddr}:
		return &s.wants.to
	case optionName{syscall.IPPROTO_IPV6, ipv6OrigDstAddr}:
		return &s.wants.to6
	case optionName{syscall.SOL_SOCKET, syscall.SO_TIMESTAMP}:
		return &s.wants.time
	case optionName{syscall.SOL_SOCKET, soTimestampNS}:
		return &s.wants.nanoseconds
	case optionName{syscall.IPPROTO_IPV6, ipv6RecvPktInfo}:
		return &s.wants.packetInfo6
	case optionName{syscall.IPPROTO_IPV6, ipv6RecvHopLimit}:
		return &s.wants.hopLimit
	case optionName{syscall.IPPROTO_IPV6, ipv6RecvTClass}:
		return &s.wants.trafficClass
	}
	return nil
}

func (s *udpSocket) option(level, name int) ([]byte, Errno) {
	key := optionName{level, name}
	if s.wrongLevel(level) {
		return nil, syscall.ENOPROTOOPT
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
	case level == syscall.IPPROTO_IPV6 && name == syscall.IPV6_MULTICAST_IF:
		s.mu.Lock()
		defer s.mu.Unlock()
		return intValue(s.groupIndex), 0
	case level == syscall.IPPROTO_IP && name == syscall.IP_MULTICAST_IF:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.groupsBy.address(), 0
	case level == syscall.IPPROTO_UDP && name == udpSegment && s.isUDP():
		s.mu.Lock()
		defer s.mu.Unlock()
		return intValue(s.segment), 0
	case key == groOption && s.isUDP():
		return s.recall(key), 0
	case level == syscall.SOL_SOCKET && name == syscall.SO_BINDTODEVICE:
		return s.deviceName(), 0
	case level == syscall.SOL_SOCKET && name == syscall.SO_ACCEPTCONN:
		return boolValue(false), 0
	case level == syscall.SOL_SOCKET:
		return s.socketBase.option(name)
	}
	return nil, syscall.ENOPROTOOPT
}

func (s *udpSocket) setOption(level, name int, value []byte) Errno {
	key := optionName{level, name}
	if s.wrongLevel(level) {
		return syscall.ENOPROTOOPT
	}
	if key == v6OnlyOption && s.conn.Load() != nil {
		return syscall.EINVAL
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
			if level == syscall.SOL_SOCKET { // one kind of time at most
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
	case level != syscall.SOL_SOCKET && (name == mcastJoinGroup || name == mcastLeaveGroup):
		m, errno := s.groupRequest(level, value)
		return s.member(m, errno, name == mcastJoinGroup)
	case level == syscall.IPPROTO_IP && (name == syscall.IP_ADD_MEMBERSHIP || name == syscall.IP_DROP_MEMBERSHIP):
		m, errno := s.membership(value)
		return s.member(m, errno, name == syscall.IP_ADD_MEMBERSHIP)
	case level == syscall.IPPROTO_IPV6 && (name == ipv6AddMembership || name == ipv6DropMembership):
		m, errno := s.membership6(value)
		return s.member(m, errno, name == ipv6AddMembership)
	case level == syscall.IPPROTO_IPV6 && name == syscall.IPV6_MULTICAST_IF:
		return s.setMulticastInterface6(value)
	case level == syscall.IPPROTO_IP && name == syscall.IP_MULTICAST_IF:
		return s.setMulticastInterface4(value)
	case key == pathMTU6:
		return s.setMaxPacket(value)
	case level == syscall.IPPROTO_UDP && name == udpSegment && s.isUDP():
		return s.setSegment(value)
	case key == groOption && s.isUDP():
		n, errno := parseInt(value)
		if errno == 0 {
			errno = s.remember(key, boolValue(n != 0))
		}
		return errno
	case level == syscall.SOL_SOCKET && name == syscall.SO_BINDTODEVICE:
		return s.bindToDevice(value)
	case level == syscall.SOL_SOCKET:
		if errno, known := s.filterOption(name, value); known {
			return errno
		}
		return s.socketBase.setOption(name, value)
	}
	return syscall.ENOPROTOOPT
}

// setSegment is UDP_SEGMENT: into datagrams of which length what is sent at once is cut.
func (s *udpSocket) setSegment(value []byte) Errno {
	n, errno := parseInt(value)
	if errno == 0 && (n < 0 || n > math.MaxUint16) {
		errno = syscall.EINVAL
	}
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	s.segment = n
	s.mu.Unlock()
	return 0
}
