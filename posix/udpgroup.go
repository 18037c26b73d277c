package posix

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"loam/stack"
)

// Multicast groups of UDP sockets: ip(7), proc(5).

// membership is what options about a group name.
type membership struct {
	group netip.Addr
	on    *stack.Interface // nil: the program leaves it to us
}

// membership reads struct ip_mreq, which names an interface by an address, or
// struct ip_mreqn, which may do so by an index. Errors: EINVAL, ENODEV.
func (s *udpSocket) membership(value []byte) (membership, Errno) {
	if len(value) < 8 {
		return membership{}, syscall.EINVAL
	}
	index := 0
	if len(value) >= 12 {
		index = int(binary.NativeEndian.Uint32(value[8:]))
	}
	return s.memberAt([4]byte(value), [4]byte(value[4:]), index)
}

// memberAt is a group of IPv4 on the interface of an index, or else on that of an address.
// Errors: EINVAL, ENODEV.
func (s *udpSocket) memberAt(group, at [4]byte, index int) (membership, Errno) {
	m, addr := membership{group: netip.AddrFrom4(group)}, netip.AddrFrom4(at)
	if !m.group.IsMulticast() {
		return m, syscall.EINVAL
	}
	if index == 0 && addr.IsUnspecified() {
		return m, 0
	}
	if index != 0 {
		m.on = interfaceByIndex(s.net, index)
	} else {
		m.on = s.interfaceAt(addr)
	}
	if m.on == nil {
		return m, syscall.ENODEV
	}
	return m, 0
}

// groupInterface is by which interface, and from which address, datagrams to groups of IPv4 go that
// do not say themselves: IP_MULTICAST_IF of ip(7). The zero value leaves it to the routes.
type groupInterface struct {
	on     *stack.Interface
	source netip.Addr
}

// setMulticastInterface4 reads struct in_addr, ip_mreq or ip_mreqn: of the last two the group does not
// matter. Errors: EINVAL, EADDRNOTAVAIL.
func (s *udpSocket) setMulticastInterface4(value []byte) Errno {
	var by groupInterface
	index := 0
	switch {
	case len(value) < 4:
		return syscall.EINVAL
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
		by.on = interfaceByIndex(s.net, index)
	case !by.source.IsUnspecified():
		by.on = s.interfaceAt(by.source)
	}
	if by.on == nil && (index != 0 || !by.source.IsUnspecified()) {
		return syscall.EADDRNOTAVAIL
	}
	s.mu.Lock()
	s.groupsBy = by
	s.mu.Unlock()
	return 0
}

// address is what the option reads as: struct in_addr.
func (g *groupInterface) address() []byte {
	if !g.source.IsValid() {
		return make([]byte, 4)
	}
	return g.source.AsSlice()
}

// apply says how a datagram goes, from c to to or its peer, if that is a group.
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

// interfaceAt finds the interface that has an address, or nil.
func (s *udpSocket) interfaceAt(addr netip.Addr) *stack.Interface {
	for _, a := range s.net.Addresses() {
		if a.Prefix.Addr() == addr {
			return interfaceNamed(s.net, a.Interface)
		}
	}
	return nil
}

// member joins a group or leaves it, unless it could not be read.
func (s *udpSocket) member(m membership, errno Errno, join bool) Errno {
	switch {
	case errno != 0:
		return errno
	case join:
		return toErrno(s.opts.Groups.JoinGroup(m.group, m.on))
	}
	return toErrno(s.opts.Groups.LeaveGroup(m.group, m.on))
}

// allHosts is the group that every host is in (RFC 1112 section 4).
var allHosts = netip.AddrFrom4([4]byte{224, 0, 0, 1})

// members lists the groups of an interface of one version of IP, in order, with the one that
// every host is in.
func members(list []stack.Membership, everybody netip.Addr) []stack.Membership {
	list = slices.DeleteFunc(list, func(m stack.Membership) bool { return m.Group.Is4() != everybody.Is4() })
	if i := slices.IndexFunc(list, func(m stack.Membership) bool { return m.Group == everybody }); i >= 0 {
		list[i].Users++
	} else {
		list = append(list, stack.Membership{Group: everybody, Users: 1, Answer: -1})
	}
	slices.SortFunc(list, func(a, b stack.Membership) int { return a.Group.Compare(b.Group) })
	return list
}

// timer is when a query about a group is answered, as the files of /proc/net have it:
// whether it is to be, and in how many hundredths of a second.
func timer(m *stack.Membership) (running int, left int64) {
	if m.Answer < 0 {
		return 0, 0
	}
	return 1, int64(m.Answer / (10 * time.Millisecond))
}

// procIGMP is what /proc/net/igmp says: who is in which group. Groups are
// numbers of the machine's byte order.
func (p *Process) procIGMP() string {
	var b strings.Builder
	b.WriteString("Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n")
	for _, i := range p.interfaces() {
		groups := i.Groups()
		list := members(groups.Members, allHosts)
		fmt.Fprintf(&b, "%d\t%-10s: %5d %7s\n", i.Index(), i.Name(), len(list), fmt.Sprint("V", groups.IGMP))
		for _, m := range list {
			reporter := 0
			if m.Reporter {
				reporter = 1
			}
			running, left := timer(&m)
			fmt.Fprintf(&b, "\t\t\t\t%s %5d %d:%08X\t\t%d\n", hexAddr(m.Group), m.Users, running, left, reporter)
		}
	}
	return b.String()
}

// mentions lists the sources that filters on an interface name, of one version of IP, in
// order.
func mentions(i *stack.Interface, four bool) []stack.SourceMention {
	list := slices.DeleteFunc(i.SourceMentions(), func(m stack.SourceMention) bool { return m.Group.Is4() != four })
	slices.SortFunc(list, func(a, b stack.SourceMention) int {
		return cmp.Or(a.Group.Compare(b.Group), a.Source.Compare(b.Source))
	})
	return list
}

// procMCFilter is what /proc/net/mcfilter says: which sources the filters of sockets name, and
// how many of these include and exclude it.
func (p *Process) procMCFilter() string {
	var b strings.Builder
	b.WriteString("Idx Device        MCA        SRC    INC    EXC\n")
	for _, i := range p.interfaces() {
		for _, m := range mentions(i, true) {
			group, source := m.Group.As4(), m.Source.As4()
			fmt.Fprintf(&b, "%3d %6.6s 0x%08x 0x%08x %6d %6d\n", i.Index(), i.Name(),
				binary.BigEndian.Uint32(group[:]), binary.BigEndian.Uint32(source[:]), m.Include, m.Exclude)
		}
	}
	return b.String()
}
