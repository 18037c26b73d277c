package posix

import (
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

// membership is what IP_ADD_MEMBERSHIP and IP_DROP_MEMBERSHIP name.
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
	m := membership{group: netip.AddrFrom4([4]byte(value))}
	if !m.group.IsMulticast() {
		return m, syscall.EINVAL
	}
	addr, index := netip.AddrFrom4([4]byte(value[4:])), 0
	if len(value) >= 12 {
		index = int(binary.NativeEndian.Uint32(value[8:]))
	}
	if index == 0 && addr.IsUnspecified() {
		return m, 0
	}
	if index != 0 {
		m.on = s.interfaceOf(index)
	} else {
		m.on = s.interfaceAt(addr)
	}
	if m.on == nil {
		return m, syscall.ENODEV
	}
	return m, 0
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
		return s.join(m)
	}
	return s.drop(m)
}

func (s *udpSocket) join(m membership) Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conn.Load(); c != nil {
		return toErrno(c.JoinGroup(m.group, m.on))
	}
	if slices.Contains(s.groups, m) {
		return syscall.EADDRINUSE
	}
	s.groups = append(s.groups, m)
	return 0
}

func (s *udpSocket) drop(m membership) Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conn.Load(); c != nil {
		return toErrno(c.LeaveGroup(m.group, m.on))
	}
	i := slices.Index(s.groups, m)
	if i < 0 {
		return syscall.EADDRNOTAVAIL
	}
	s.groups = slices.Delete(s.groups, i, i+1)
	return 0
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
