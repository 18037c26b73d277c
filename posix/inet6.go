package posix

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"syscall"

	"loam/stack"
)

// What sockets of AF_INET6 have besides those of AF_INET (ipv6(7), RFC 3493, RFC 3542):
// addresses in their own form, those of IPv4 mapped into it, and options of their own.
//
// The zone of an address is a number here, sin6_scope_id, and the name of an interface
// in the stack.

// Options of IPPROTO_IPV6 (linux/in6.h).
const (
	ipv6AddMembership  = 20
	ipv6DropMembership = 21
	ipv6MTUDiscover    = 23
	ipv6RecvErr        = 25
	ipv6RecvPktInfo    = 49
	ipv6PktInfo        = 50
	ipv6RecvHopLimit   = 51
	ipv6HopLimit       = 52
	ipv6RecvPathMTU    = 60
	ipv6PathMTU        = 61
	ipv6DontFrag       = 62
	ipv6RecvTClass     = 66
	ipv6TClass         = 67
	ipv6AutoFlowLabel  = 70
	ipv6OrigDstAddr    = 74
)

var v6OnlyOption = optionName{syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY}

// harmless6 are options that a program may set and read back although they change
// nothing here.
var harmless6 = map[optionName]bool{
	{syscall.IPPROTO_IPV6, ipv6AutoFlowLabel}:           true,
	{syscall.IPPROTO_IPV6, ipv6RecvPathMTU}:             true,
	{syscall.IPPROTO_IPV6, syscall.IPV6_MULTICAST_HOPS}: true,
}

// isInet6 reports whether the socket is one of AF_INET6.
func (s *socketBase) isInet6() bool { return s.domain == syscall.AF_INET6 }

// wrongLevel reports whether options of the level are not for the socket.
func (s *socketBase) wrongLevel(level int) bool { return level == syscall.IPPROTO_IPV6 && !s.isInet6() }

// any is the name of a socket of the family that is not bound.
func (s *socketBase) any() netip.AddrPort {
	if s.isInet6() {
		return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	return unspecified
}

// inet is an address of the stack as the socket's family has it.
func (s *socketBase) inet(net *stack.Stack, a netip.AddrPort) Address {
	if !s.isInet6() {
		return inet(a)
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
	return Address{Family: syscall.AF_INET6, IP: netip.AddrPortFrom(ip, a.Port())}
}

// scopeOf is the number of the interface that a zone names.
func scopeOf(net *stack.Stack, zone string) string {
	if i := interfaceNamed(net, zone); i != nil {
		return strconv.Itoa(i.Index())
	}
	return zone
}

// parseScoped reads what is behind the port of a struct sockaddr_in6: flow, address,
// scope.
func parseScoped(b []byte) netip.Addr {
	a := netip.AddrFrom16([16]byte(b[4:20]))
	if scope := binary.NativeEndian.Uint32(b[20:]); scope != 0 {
		a = a.WithZone(strconv.FormatUint(uint64(scope), 10))
	}
	return a
}

// scope is what sin6_scope_id says of an address.
func scope(a netip.Addr) uint32 {
	n, err := strconv.ParseUint(a.Zone(), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// Messages of RFC 3542: IPV6_PKTINFO is the address and the index of the interface.
func (w wantedControl) messages6(net *stack.Stack, d stack.Datagram) []Control {
	var list []Control
	if w.packetInfo6 {
		to := d.To.Addr().As16()
		data := binary.NativeEndian.AppendUint32(to[:], uint32(d.Interface))
		list = append(list, Control{Level: syscall.IPPROTO_IPV6, Type: ipv6PktInfo, Data: data})
	}
	if d.To.Addr().Is4() {
		return list
	}
	if w.hopLimit {
		list = append(list, Control{Level: syscall.IPPROTO_IPV6, Type: ipv6HopLimit, Data: intValue(int(d.TTL))})
	}
	if w.trafficClass {
		list = append(list, Control{Level: syscall.IPPROTO_IPV6, Type: ipv6TClass, Data: intValue(int(d.TOS))})
	}
	if w.to6 {
		base := socketBase{domain: syscall.AF_INET6}
		list = append(list, Control{Level: syscall.IPPROTO_IPV6, Type: ipv6OrigDstAddr, Data: base.inet(net, d.To).Append(nil)})
	}
	return list
}

// groupRequest reads struct group_req. Errors: EINVAL, ENODEV; EADDRNOTAVAIL for a group of
// IPv4 where one of IPv6 is wanted.
func (s *udpSocket) groupRequest(level int, value []byte) (membership, Errno) {
	if len(value) < sizeGroupReq {
		return membership{}, syscall.EINVAL
	}
	group := storedAddr(level, value[groupAt:])
	switch {
	case group.IsValid():
		return s.memberOn(group, int(binary.NativeEndian.Uint32(value)))
	case level == syscall.IPPROTO_IPV6:
		return membership{}, syscall.EADDRNOTAVAIL
	}
	return membership{}, syscall.EINVAL
}

// membership6 reads struct ipv6_mreq. Errors: EINVAL, ENODEV.
func (s *udpSocket) membership6(value []byte) (membership, Errno) {
	if len(value) < 20 {
		return membership{}, syscall.EINVAL
	}
	return s.memberOn(netip.AddrFrom16([16]byte(value)), int(int32(binary.NativeEndian.Uint32(value[16:]))))
}

// setMulticastInterface6 is IPV6_MULTICAST_IF: where datagrams to groups go that do
// not say by their scope.
func (s *udpSocket) setMulticastInterface6(value []byte) Errno {
	index, errno := parseInt(value)
	if errno != 0 {
		return errno
	}
	zone := ""
	if i := interfaceByIndex(s.net, index); i != nil {
		zone = i.Name()
	}
	if zone == "" && index != 0 {
		return syscall.ENODEV
	}
	s.mu.Lock()
	s.groupZone, s.groupIndex = zone, index
	s.mu.Unlock()
	return 0
}

// toGroup gives a destination the interface of IPV6_MULTICAST_IF, if it is a group
// that has none. The caller holds mu.
func (s *udpSocket) toGroup(to netip.AddrPort) netip.AddrPort {
	if a := to.Addr(); s.groupZone != "" && a.Is6() && a.IsMulticast() && a.Zone() == "" {
		return netip.AddrPortFrom(a.WithZone(s.groupZone), to.Port())
	}
	return to
}
