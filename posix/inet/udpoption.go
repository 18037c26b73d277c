package inet

import (
	"math"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
)

// Options of UDP sockets: socket(7), ip(7), udp(7).

type udpOpts = stack.UDPOptions

const defaultUDPBuffer = 212992 // net.core.rmem_default

// udpIntOptions are the options with an int value that are fields of stack.UDPOptions. A multicast TTL of 0 is replaced by
// 1, because the stack does not restrict datagrams to this host.
var udpIntOptions = map[socket.OptionName]socket.IntOption[udpOpts]{
	{Level: linux.SOL_SOCKET, Name: linux.SO_BROADCAST}:   socket.Flag(func(o *udpOpts) *bool { return &o.Broadcast }),
	{Level: linux.SOL_SOCKET, Name: linux.SO_REUSEADDR}:   socket.Flag(func(o *udpOpts) *bool { return &o.ReuseAddr }),
	{Level: linux.SOL_SOCKET, Name: linux.SO_REUSEPORT}:   socket.Flag(func(o *udpOpts) *bool { return &o.ReusePort }),
	{Level: linux.SOL_SOCKET, Name: linux.SO_RCVBUF}:      socket.Buffer(func(o *udpOpts) *int { return &o.ReceiveBuffer }, defaultUDPBuffer),
	{Level: linux.SOL_SOCKET, Name: linux.SO_RCVBUFFORCE}: socket.Buffer(func(o *udpOpts) *int { return &o.ReceiveBuffer }, defaultUDPBuffer),
	{Level: linux.SOL_SOCKET, Name: linux.SO_SNDBUF}:      socket.Buffer(func(o *udpOpts) *int { return &o.SendBuffer }, defaultUDPBuffer),
	{Level: linux.SOL_SOCKET, Name: linux.SO_SNDBUFFORCE}: socket.Buffer(func(o *udpOpts) *int { return &o.SendBuffer }, defaultUDPBuffer),

	{Level: linux.IPPROTO_IP, Name: linux.IP_TTL}:           socket.Octet(func(o *udpOpts) *uint8 { return &o.TTL }, 1, 64),
	{Level: linux.IPPROTO_IP, Name: linux.IP_TOS}:           socket.LowByte(func(o *udpOpts) *uint8 { return &o.TOS }),
	{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_TTL}: socket.Octet(func(o *udpOpts) *uint8 { return &o.GroupTTL }, 0, 1),
	{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_ALL}: socket.Truth(func(o *udpOpts) *bool { return &o.AllGroups }),

	{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_LOOP}:     socket.Unless(func(o *udpOpts) *bool { return &o.NoLoop }),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MULTICAST_LOOP}: socket.Strictly(socket.Unless(func(o *udpOpts) *bool { return &o.NoLoop6 })),

	recvErr:             socket.Flag(func(o *udpOpts) *bool { return &o.QueueErrors }),
	recvErr6:            socket.Flag(func(o *udpOpts) *bool { return &o.QueueErrors6 }),
	recvExtensions:      socket.Truth(func(o *udpOpts) *bool { return &o.ReportExtensions }),
	recvExtensions6:     socket.Truth(func(o *udpOpts) *bool { return &o.ReportExtensions6 }),
	socket.MTUDiscover:  discovery(func(o *udpOpts) *stack.Discovery { return &o.Discovery }),
	socket.MTUDiscover6: discovery(func(o *udpOpts) *stack.Discovery { return &o.Discovery6 }),
	V6Only:              socket.Flag(func(o *udpOpts) *bool { return &o.V6Only }),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_UNICAST_HOPS}:   socket.Octet(func(o *udpOpts) *uint8 { return &o.HopLimit }, 1, 64),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MULTICAST_HOPS}: socket.Octet(func(o *udpOpts) *uint8 { return &o.GroupHops }, 0, 1),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVPATHMTU}:    socket.Flag(func(o *udpOpts) *bool { return &o.ReportPathMTU }),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_DONTFRAG}:       socket.Flag(func(o *udpOpts) *bool { return &o.Whole6 }),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MULTICAST_ALL}:  socket.Flag(func(o *udpOpts) *bool { return &o.AllGroups6 }),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_TCLASS}:         socket.Octet(func(o *udpOpts) *uint8 { return &o.TrafficClass }, 0, 0),
}

// groOption is UDP_GRO, which allows a read to return several datagrams of one sender. The option is stored and has no
// effect: a read costs no more than a function call, so combining datagrams saves little.
var groOption = socket.OptionName{Level: linux.IPPROTO_UDP, Name: linux.UDP_GRO}

// udpHarmless are options that a program can set and read but that have no effect. All read as 0 or 1. IP_RECVOPTS and IP_RETOPTS,
// which ping sets, request messages with the IPv4 options of a packet; the stack does not pass these options on.
var udpHarmless = map[socket.OptionName]bool{
	{Level: linux.SOL_SOCKET, Name: linux.SO_KEEPALIVE}:            true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_FREEBIND}:             true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_RECVOPTS}:             true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_RETOPTS}:              true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_BIND_ADDRESS_NO_PORT}: true,
}

// wanted returns the field that a boolean option sets to request a control message. It returns nil for other options.
func (s *UDPSocket) wanted(key socket.OptionName) *bool {
	switch key {
	case socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_PKTINFO}:
		return &s.wants.packetInfo
	case socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_RECVTTL}:
		return &s.wants.ttl
	case socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_RECVTOS}:
		return &s.wants.tos
	case socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_ORIGDSTADDR}:
		return &s.wants.to
	case socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_ORIGDSTADDR}:
		return &s.wants.to6
	case socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_TIMESTAMP}:
		return &s.wants.Time
	case socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_TIMESTAMPNS}:
		return &s.wants.Nanoseconds
	case socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVPKTINFO}:
		return &s.wants.packetInfo6
	case socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVHOPLIMIT}:
		return &s.wants.hopLimit
	case socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVTCLASS}:
		return &s.wants.trafficClass
	}
	return nil
}

func (s *UDPSocket) Option(level, name int) ([]byte, linux.Errno) {
	key := socket.OptionName{Level: level, Name: name}
	if s.WrongLevel(level) {
		return nil, s.NoOption(level)
	}
	if o, ok := udpIntOptions[key]; ok {
		opts := s.options()
		return socket.IntValue(o.Get(&opts)), 0
	}
	if o, ok := coverageOption(level, name); ok && s.hasPorts() {
		opts := s.options()
		return socket.IntValue(o.Get(&opts)), 0
	}
	if _, ok := harmless(udpHarmless, key); ok {
		return s.Recall(key), 0
	}
	if w := s.wanted(key); w != nil {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return socket.BoolValue(*w), 0
	}
	switch {
	case key == pathMTU || key == pathMTU6:
		return pathMTUValue(s.net, s.remote())
	case key == pathInfo6:
		return pathInfoValue(s.net, s.remote())
	case level == linux.IPPROTO_IPV6 && name == linux.IPV6_MULTICAST_IF:
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return socket.IntValue(s.groupIndex), 0
	case level == linux.IPPROTO_IP && name == linux.IP_MULTICAST_IF:
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return s.groupsBy.address(), 0
	case level == linux.IPPROTO_UDP && name == linux.UDP_SEGMENT && s.isUDP():
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return socket.IntValue(s.segment), 0
	case key == corkOption && s.hasPorts():
		return socket.BoolValue(s.cork.on.Load()), 0
	case key == groOption && s.isUDP():
		return s.Recall(key), 0
	case level == linux.SOL_SOCKET && name == linux.SO_BINDTODEVICE:
		return s.deviceName(), 0
	case level == linux.SOL_SOCKET && name == linux.SO_ACCEPTCONN:
		return socket.BoolValue(false), 0
	case level == linux.SOL_SOCKET:
		return s.Base.Option(name)
	}
	return nil, s.NoOption(level)
}

func (s *UDPSocket) SetOption(level, name int, value []byte) linux.Errno {
	key := socket.OptionName{Level: level, Name: name}
	if s.WrongLevel(level) {
		return linux.ENOPROTOOPT
	}
	if key == V6Only && s.conn.Load() != nil {
		return linux.EINVAL
	}
	if o, ok := udpIntOptions[key]; ok {
		n, errno := socket.ParseInt(value)
		if errno != 0 {
			return errno
		}
		bad := s.setOptions(func(opts *udpOpts) { errno = o.Set(opts, n) })
		if errno != 0 {
			return errno
		}
		return bad
	}
	if isTruth, ok := harmless(udpHarmless, key); ok {
		return s.rememberHarmless(key, isTruth, value)
	}
	if w := s.wanted(key); w != nil {
		n, errno := socket.ParseInt(value)
		if errno == 0 {
			s.Mu.Lock()
			if level == linux.SOL_SOCKET { // SO_TIMESTAMP and SO_TIMESTAMPNS replace each other
				s.wants.Time, s.wants.Nanoseconds = false, false
			}
			*w = n != 0
			s.Mu.Unlock()
		}
		return errno
	}
	switch {
	case sourceOptions[key] != nil:
		return s.sourceOption(key, value)
	case IsFilterOption(level, name):
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
	case key == corkOption && s.hasPorts():
		return s.setCork(value)
	case key == groOption && s.isUDP():
		n, errno := socket.ParseInt(value)
		if errno == 0 {
			errno = s.Remember(key, socket.BoolValue(n != 0))
		}
		return errno
	case level == linux.SOL_SOCKET && name == linux.SO_BINDTODEVICE:
		return s.bindToDevice(value)
	case level == linux.SOL_SOCKET:
		if errno, known := s.filterOption(name, value); known {
			return errno
		}
		return s.Base.SetOption(name, value)
	}
	return linux.ENOPROTOOPT
}

// setSegment implements UDP_SEGMENT: the length of the datagrams into which a send is split; 0: no
// splitting.
func (s *UDPSocket) setSegment(value []byte) linux.Errno {
	n, errno := socket.ParseInt(value)
	if errno == 0 && (n < 0 || n > math.MaxUint16) {
		errno = linux.EINVAL
	}
	if errno != 0 {
		return errno
	}
	s.Mu.Lock()
	s.segment = n
	s.Mu.Unlock()
	return 0
}
