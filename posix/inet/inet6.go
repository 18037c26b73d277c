package inet

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"

	"loam/abi/linux"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
)

// AF_INET6 sockets (ipv6(7), RFC 3493, RFC 3542): address format, IPv4-mapped addresses and options.
//
// An address identifies an interface by its index (sin6_scope_id). The stack identifies it by its name.

var V6Only = socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_V6ONLY}

// harmless6 are options that a program may set and read, and that have no effect. The value is true for options that read as 0
// or 1.
var harmless6 = map[socket.OptionName]bool{
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_AUTOFLOWLABEL}: true,
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVPATHMTU}:   true,
}

// harmless returns whether an option is in the map or in harmless6, and the value there.
func harmless(of map[socket.OptionName]bool, key socket.OptionName) (isTruth, ok bool) {
	if isTruth, ok = of[key]; !ok {
		isTruth, ok = harmless6[key]
	}
	return isTruth, ok
}

// rememberHarmless stores the value of an option that has no effect.
func (s *Base) rememberHarmless(key socket.OptionName, isTruth bool, value []byte) linux.Errno {
	if n, errno := socket.ParseInt(value); errno == 0 && isTruth {
		value = socket.BoolValue(n != 0)
	}
	return s.Remember(key, value)
}

// IsInet6 reports whether this is an AF_INET6 socket.
func (s *Base) IsInet6() bool { return s.Domain == linux.AF_INET6 }

// WrongLevel reports whether the socket has no options of an option level (the second argument of setsockopt(2)).
func (s *Base) WrongLevel(level int) bool { return level == linux.IPPROTO_IPV6 && !s.IsInet6() }

// levelsOf are the option levels of each socket type.
var levelsOf = map[int][]int{
	linux.SOCK_STREAM: {linux.IPPROTO_TCP},
	linux.SOCK_DGRAM:  {linux.IPPROTO_UDP, linux.IPPROTO_UDPLITE},
	linux.SOCK_RAW:    {linux.SOL_RAW},
}

// NoOption returns the errno of getsockopt(2) for an option that the socket lacks. As on Linux, an AF_INET socket returns
// EOPNOTSUPP for a level of another protocol; otherwise the errno is ENOPROTOOPT.
func (s *Base) NoOption(level int) linux.Errno {
	if s.IsInet6() || level == linux.SOL_SOCKET || level == linux.IPPROTO_IP || slices.Contains(levelsOf[s.Type], level) {
		return linux.ENOPROTOOPT
	}
	return linux.EOPNOTSUPP
}

// any returns the local address of a socket that is not bound: the unspecified address of its family, with port 0.
func (s *Base) any() netip.AddrPort {
	if s.IsInet6() {
		return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	return unspecified
}

// inet converts an address of the stack to an address of the socket's family.
func (s *Base) inet(net *stack.Stack, a netip.AddrPort) socket.Address {
	if !s.IsInet6() {
		return socket.Inet(a)
	}
	ip := a.Addr()
	switch {
	case ip.Is4() && ip.IsUnspecified():
		ip = netip.IPv6Unspecified()
	case ip.Is4():
		ip = netip.AddrFrom16(ip.As16())
	case ip.Zone() != "":
		ip = ip.WithZone(scopeOf(net, ip.Zone()))
	}
	return socket.Address{Family: linux.AF_INET6, IP: netip.AddrPortFrom(ip, a.Port())}
}

// scopeOf returns the index of the interface named by a zone, in decimal.
func scopeOf(net *stack.Stack, zone string) string {
	if i := netdevice.Named(net, zone); i != nil {
		return strconv.Itoa(i.Index())
	}
	return zone
}

// messages6 returns the control messages of RFC 3542 that the socket requested. IPV6_PKTINFO contains
// the destination address and the index of the receiving interface.
func (w WantedControl) messages6(net *stack.Stack, d stack.Datagram) []socket.Control {
	var list []socket.Control
	if w.packetInfo6 {
		to := d.To.Addr().As16()
		data := binary.NativeEndian.AppendUint32(to[:], uint32(d.Interface))
		list = append(list, socket.Control{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_PKTINFO, Data: data})
	}
	if d.To.Addr().Is4() {
		return list
	}
	if w.hopLimit {
		list = append(list, socket.Control{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_HOPLIMIT, Data: socket.IntValue(int(d.TTL))})
	}
	if w.trafficClass {
		list = append(list, socket.Control{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_TCLASS, Data: socket.IntValue(int(d.TOS))})
	}
	if w.to6 {
		base := NewBase(linux.AF_INET6, 0, 0)
		list = append(list, socket.Control{Level: linux.IPPROTO_IPV6, Type: linux.IPV6_ORIGDSTADDR, Data: base.inet(net, d.To).Append(nil)})
	}
	return list
}

// groupRequest parses a struct group_req. Errors: EINVAL, ENODEV; EADDRNOTAVAIL for an IPv4 group where
// an IPv6 group is required.
func (s *UDPSocket) groupRequest(level int, value []byte) (membership, linux.Errno) {
	if len(value) < linux.SizeofGroupReq {
		return membership{}, linux.EINVAL
	}
	group := storedAddr(level, value[groupAt:])
	switch {
	case group.IsValid():
		return s.memberOn(group, int(binary.NativeEndian.Uint32(value)))
	case level == linux.IPPROTO_IPV6:
		return membership{}, linux.EADDRNOTAVAIL
	}
	return membership{}, linux.EINVAL
}

// membership6 parses a struct ipv6_mreq. Errors: EINVAL, ENODEV.
func (s *UDPSocket) membership6(value []byte) (membership, linux.Errno) {
	if len(value) < 20 {
		return membership{}, linux.EINVAL
	}
	return s.memberOn(netip.AddrFrom16([16]byte(value)), int(int32(binary.NativeEndian.Uint32(value[16:]))))
}

// setMulticastInterface6 implements setting IPV6_MULTICAST_IF: the interface for datagrams to groups
// without a scope.
func (s *UDPSocket) setMulticastInterface6(value []byte) linux.Errno {
	index, errno := socket.ParseInt(value)
	if errno != 0 {
		return errno
	}
	zone := ""
	if i := netdevice.ByIndex(s.net, index); i != nil {
		zone = i.Name()
	}
	if zone == "" && index != 0 {
		return linux.ENODEV
	}
	s.Mu.Lock()
	s.groupZone, s.groupIndex = zone, index
	s.Mu.Unlock()
	return 0
}

// toGroup adds the interface of IPV6_MULTICAST_IF to a multicast destination without a zone. The caller
// holds mu.
func (s *UDPSocket) toGroup(to netip.AddrPort) netip.AddrPort {
	if a := to.Addr(); s.groupZone != "" && a.Is6() && a.IsMulticast() && a.Zone() == "" {
		return netip.AddrPortFrom(a.WithZone(s.groupZone), to.Port())
	}
	return to
}
