package inet

import (
	"encoding/binary"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/netdevice"
	"loam/stack"
)

// Multicast groups of UDP sockets: ip(7), proc(5).

// membership is a multicast group on an interface.
type membership struct {
	group netip.Addr
	on    *stack.Interface // interface; nil: selected by the routing table
}

// membership parses a struct ip_mreq, which identifies the interface by an address, or a struct
// ip_mreqn, which may use an index instead. Errors: EINVAL, ENODEV.
func (s *UDPSocket) membership(value []byte) (membership, linux.Errno) {
	if len(value) < 8 {
		return membership{}, linux.EINVAL
	}
	index := 0
	if len(value) >= 12 {
		index = int(binary.NativeEndian.Uint32(value[8:]))
	}
	return s.memberAt([4]byte(value), [4]byte(value[4:]), index)
}

// memberAt returns the membership in an IPv4 group. index selects the interface; if it is
// 0, the address at selects it. Errors: EINVAL, ENODEV.
func (s *UDPSocket) memberAt(group, at [4]byte, index int) (membership, linux.Errno) {
	m, addr := membership{group: netip.AddrFrom4(group)}, netip.AddrFrom4(at)
	if !m.group.IsMulticast() {
		return m, linux.EINVAL
	}
	if index == 0 && addr.IsUnspecified() {
		return m, 0
	}
	if index != 0 {
		m.on = netdevice.ByIndex(s.net, index)
	} else {
		m.on = s.interfaceAt(addr)
	}
	if m.on == nil {
		return m, linux.ENODEV
	}
	return m, 0
}

// groupInterface is the default interface and source address of IPv4 multicast datagrams
// (IP_MULTICAST_IF, ip(7)). The zero value leaves both to the routing table.
type groupInterface struct {
	on     *stack.Interface
	source netip.Addr
}

// setMulticastInterface4 sets the default interface from a struct in_addr, ip_mreq or ip_mreqn. The group in the structure
// is ignored. Errors: EINVAL, EADDRNOTAVAIL.
func (s *UDPSocket) setMulticastInterface4(value []byte) linux.Errno {
	var by groupInterface
	index := 0
	switch {
	case len(value) < 4:
		return linux.EINVAL
	case len(value) < 8:
		by.source = netip.AddrFrom4([4]byte(value))
	default:
		by.source = netip.AddrFrom4([4]byte(value[4:]))
	}
	if len(value) >= 12 {
		index = int(binary.NativeEndian.Uint32(value[8:]))
	}
	switch {
	case index != 0:
		by.on = netdevice.ByIndex(s.net, index)
	case !by.source.IsUnspecified():
		by.on = s.interfaceAt(by.source)
	}
	if by.on == nil && (index != 0 || !by.source.IsUnspecified()) {
		return linux.EADDRNOTAVAIL
	}
	s.Mu.Lock()
	s.groupsBy = by
	s.Mu.Unlock()
	return 0
}

// address returns the value of IP_MULTICAST_IF: a struct in_addr.
func (g *groupInterface) address() []byte {
	if !g.source.IsValid() {
		return make([]byte, 4)
	}
	return g.source.AsSlice()
}

// apply sets the interface and the source of a datagram to an IPv4 group, unless the send
// options (by) already have them. If the address to is invalid, the destination is the
// peer of c.
func (g *groupInterface) apply(by *stack.UDPSend, c datagramConn, to netip.AddrPort) {
	if g.on == nil {
		return
	}
	if !to.IsValid() {
		to = c.RemoteAddrPort()
	}
	if a := to.Addr().Unmap(); !a.Is4() || !a.IsMulticast() {
		return
	}
	if by.On == nil {
		by.On = g.on
	}
	if !by.Source.IsValid() && !g.source.IsUnspecified() && c.LocalAddrPort().Addr().IsUnspecified() {
		by.Source = g.source
	}
}

// interfaceAt returns the interface that has an address, or nil.
func (s *UDPSocket) interfaceAt(addr netip.Addr) *stack.Interface {
	for _, a := range s.net.Addresses() {
		if a.Prefix.Addr() == addr {
			return netdevice.Named(s.net, a.Interface)
		}
	}
	return nil
}

// member joins or leaves a multicast group. If errno is not 0, it does nothing and returns errno.
func (s *UDPSocket) member(m membership, errno linux.Errno, join bool) linux.Errno {
	switch {
	case errno != 0:
		return errno
	case join:
		return file.ToErrno(s.opts.Groups.JoinGroup(m.group, m.on))
	}
	return file.ToErrno(s.opts.Groups.LeaveGroup(m.group, m.on))
}
