package posix

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/netdevice"
	"loam/stack"
)

// Multicast groups of UDP sockets: ip(7), proc(5).

// membership is a multicast group on an interface.
type membership struct {
	group netip.Addr
	on    *stack.Interface // nil: selected by the routing table
}

// membership parses a struct ip_mreq, which identifies the interface by an address, or a struct
// ip_mreqn, which may use an index instead. Errors: EINVAL, ENODEV.
func (s *udpSocket) membership(value []byte) (membership, Errno) {
	if len(value) < 8 {
		return membership{}, linux.EINVAL
	}
	index := 0
	if len(value) >= 12 {
		index = int(binary.NativeEndian.Uint32(value[8:]))
	}
	return s.memberAt([4]byte(value), [4]byte(value[4:]), index)
}

// memberAt returns an IPv4 group on the interface with an index, or if that is 0 with an address.
// Errors: EINVAL, ENODEV.
func (s *udpSocket) memberAt(group, at [4]byte, index int) (membership, Errno) {
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

// setMulticastInterface4 parses a struct in_addr, ip_mreq or ip_mreqn. It ignores the group. Errors:
// EINVAL, EADDRNOTAVAIL.
func (s *udpSocket) setMulticastInterface4(value []byte) Errno {
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

// address returns the value of the option: a struct in_addr.
func (g *groupInterface) address() []byte {
	if !g.source.IsValid() {
		return make([]byte, 4)
	}
	return g.source.AsSlice()
}

// apply sets the interface and source of a datagram to an IPv4 group, unless by sets them. An invalid
// to means the peer of c.
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
func (s *udpSocket) interfaceAt(addr netip.Addr) *stack.Interface {
	for _, a := range s.net.Addresses() {
		if a.Prefix.Addr() == addr {
			return netdevice.Named(s.net, a.Interface)
		}
	}
	return nil
}

// member joins or leaves a group. It returns errno if that is not 0.
func (s *udpSocket) member(m membership, errno Errno, join bool) Errno {
	switch {
	case errno != 0:
		return errno
	case join:
		return file.ToErrno(s.opts.Groups.JoinGroup(m.group, m.on))
	}
	return file.ToErrno(s.opts.Groups.LeaveGroup(m.group, m.on))
}

// allHosts is the group of all hosts (RFC 1112 section 4).
var allHosts = netip.AddrFrom4([4]byte{224, 0, 0, 1})

// members returns the sorted groups of one IP version, including everybody, the group that every host
// belongs to.
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

// timer returns a group's report timer as shown in /proc/net: whether it is running, and the remaining
// time in hundredths of a second.
func timer(m *stack.Membership) (running int, left int64) {
	if m.Answer < 0 {
		return 0, 0
	}
	return 1, int64(m.Answer / (10 * time.Millisecond))
}

// procIGMP generates /proc/net/igmp: the memberships of each interface. Groups are numbers in the
// machine's byte order.
func (p *Process) procIGMP() string {
	var b strings.Builder
	b.WriteString("Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n")
	for _, i := range netdevice.All(p.net) {
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

// mentions returns the sorted sources named by filters on an interface, for one IP version.
func mentions(i *stack.Interface, four bool) []stack.SourceMention {
	list := slices.DeleteFunc(i.SourceMentions(), func(m stack.SourceMention) bool { return m.Group.Is4() != four })
	slices.SortFunc(list, func(a, b stack.SourceMention) int {
		return cmp.Or(a.Group.Compare(b.Group), a.Source.Compare(b.Source))
	})
	return list
}

// procMCFilter generates /proc/net/mcfilter: the sources named by filters of sockets, with the number
// of filters that include and exclude each.
func (p *Process) procMCFilter() string {
	var b strings.Builder
	b.WriteString("Idx Device        MCA        SRC    INC    EXC\n")
	for _, i := range netdevice.All(p.net) {
		for _, m := range mentions(i, true) {
			group, source := m.Group.As4(), m.Source.As4()
			fmt.Fprintf(&b, "%3d %6.6s 0x%08x 0x%08x %6d %6d\n", i.Index(), i.Name(),
				binary.BigEndian.Uint32(group[:]), binary.BigEndian.Uint32(source[:]), m.Include, m.Exclude)
		}
	}
	return b.String()
}
