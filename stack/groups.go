package stack

import (
	"net/netip"
	"time"

	"loam/link"
	"loam/stack/group"
	"loam/stack/tcp"
	"loam/wire"
)

// Multicast groups of an interface (RFC 1112, RFC 4291 section 2.7): who hears which, and
// what a link is told of that. The machines of package group are run by the interface's loop.
// A gateway faces one guest and hears everything, and "lo" is no link: neither says anything.

// groups is what the loop of an interface knows of groups.
type groups struct {
	users map[netip.Addr]int // sockets and addresses, by group
	hosts [2]*group.Host     // by wire.GroupProtocol; nil: nobody is told
}

// groupHeaders are those in front of a message of IGMP and MLD in bytes, with the option that
// routers look at.
var groupHeaders = [...]int{
	wire.IGMP: wire.IPv4MinLen + len(routerAlert4),
	wire.MLD:  wire.IPv6Len + wire.IPv6ExtMinLen,
}

// routerAlert4 is the option of IPv4 that has routers look at a packet (RFC 2113).
var routerAlert4 = []byte{byte(wire.OptRouterAlert), 4, 0, 0}

// routerAlert6 is a header of IPv6 options with that one, and padding (RFC 2711).
var routerAlert6 = wire.IPv6Ext{Next: wire.ProtoICMPv6, Data: []byte{wire.IPv6OptRouterAlert, 2, 0, 0, 1, 0}}

// leastMTU6 is what fits through every link of IPv6, so that reports do not depend on what
// routers say of the link.
const leastMTU6 = 1280

// newGroups begins without a group.
func (i *Interface) newGroups() groups {
	g := groups{users: make(map[netip.Addr]int)}
	if i.groupless {
		return g
	}
	seed := i.stack.seed ^ uint64(i.index)<<24
	g.hosts[wire.IGMP] = group.NewHost(group.Config{Protocol: wire.IGMP, Room: i.ipv4MTU() - groupHeaders[wire.IGMP], Seed: seed})
	if i.ipv6 {
		g.hosts[wire.MLD] = group.NewHost(group.Config{Protocol: wire.MLD, Room: leastMTU6 - groupHeaders[wire.MLD], Seed: ^seed})
	}
	return g
}

// protocolOf is the protocol by which a group is told of.
func protocolOf(group netip.Addr) wire.GroupProtocol {
	if group.Is4() {
		return wire.IGMP
	}
	return wire.MLD
}

// join and leave count a user of a group.
func (i *Interface) join(group netip.Addr)  { i.post(func(l *ifaceLoop) { l.join(group) }) }
func (i *Interface) leave(group netip.Addr) { i.post(func(l *ifaceLoop) { l.leave(group) }) }

func (l *ifaceLoop) join(group netip.Addr) {
	l.groups.users[group]++
	if host := l.groups.hosts[protocolOf(group)]; host != nil {
		host.Join(l.now, group)
	}
}

func (l *ifaceLoop) leave(group netip.Addr) {
	if l.groups.users[group]--; l.groups.users[group] > 0 {
		return
	}
	delete(l.groups.users, group)
	if host := l.groups.hosts[protocolOf(group)]; host != nil {
		host.Leave(l.now, group)
	}
}

// renewGroups says again what was said when there was no address to say it from.
func (l *ifaceLoop) renewGroups() {
	if host := l.groups.hosts[wire.MLD]; host != nil {
		host.Renew(l.now)
	}
}

// receiveGroup takes a message from a shard.
func (l *ifaceLoop) receiveGroup(m *wire.GroupMessage) {
	if host := l.groups.hosts[m.Protocol]; host != nil {
		host.Receive(l.now, m)
	}
}

// sendGroups lets the machines act, and sends what they have to say.
func (l *ifaceLoop) sendGroups() {
	for _, host := range l.groups.hosts {
		if host == nil {
			continue
		}
		host.Advance(l.now)
		for m, ok := host.Poll(l.now); ok; m, ok = host.Poll(l.now) {
			l.sendGroup(&m)
		}
	}
}

func (l *ifaceLoop) groupsDeadline() tcp.Time {
	d := tcp.Never
	for _, host := range l.groups.hosts {
		if host != nil {
			d = min(d, host.Deadline())
		}
	}
	return d
}

// sendGroup sends a message: no router passes it on, and every router looks at it (RFC 9776
// section 4, RFC 9777 section 5).
func (l *ifaceLoop) sendGroup(m *group.Message) {
	f := link.NewFrame(m.Len())
	m.Put(f.Bytes())
	t := l.stack.tables.Load()
	if m.Protocol == wire.IGMP {
		const internetControl = 0xc0
		wire.PutIGMPChecksum(f.Bytes())
		putIPv4(f, &wire.IPv4{
			TOS: internetControl, DontFragment: true, TTL: 1, Protocol: wire.ProtoIGMP, Options: routerAlert4,
			Src: t.sourceOn(l.Interface, m.Dst), Dst: m.Dst,
		})
		l.sendEthernet(wire.MulticastMAC4(m.Dst), wire.TypeIPv4, f)
	} else {
		src := wire.LinkLocal6(l.mac)
		if !t.settled(l.Interface, src) { // it is being tried (RFC 3590 section 4)
			src = netip.IPv6Unspecified()
		}
		wire.PutICMPv6Checksum(f.Bytes(), src, m.Dst)
		routerAlert6.Put(f.Prepend(routerAlert6.Len()))
		putIPv6(f, &wire.IPv6{NextHeader: wire.ProtoHopByHop, HopLimit: 1, Src: src, Dst: m.Dst})
		l.stack.tally.add6(IPv6BytesSent, uint64(f.Len()))
		l.sendEthernet(wire.MulticastMAC6(m.Dst), wire.TypeIPv6, f)
	}
	l.stack.tally.countBy(m.Dst, GroupSent)
}

// Groups tells of multicast groups on an interface.
type Groups struct {
	IGMP, MLD int // the versions that are spoken
	Members   []Membership
}

// Membership is a group that is heard.
type Membership struct {
	Group    netip.Addr
	Users    int           // sockets that hear it, and addresses that it goes with
	Answer   time.Duration // until a query about it is answered; negative: none is to be
	Reporter bool          // nobody has reported it since we did
}

// Groups lists the groups that are heard on the interface, in no order. Those that every host
// hears are not among them, unless a socket has joined them.
func (i *Interface) Groups() Groups {
	answer := make(chan Groups, 1)
	i.post(func(l *ifaceLoop) { answer <- l.listGroups() })
	select {
	case g := <-answer:
		return g
	case <-i.ended:
		return Groups{}
	}
}

func (l *ifaceLoop) listGroups() Groups {
	g := Groups{IGMP: int(wire.IGMP.Newest()), MLD: int(wire.MLD.Newest())}
	for p, version := range [...]*int{wire.IGMP: &g.IGMP, wire.MLD: &g.MLD} {
		if host := l.groups.hosts[p]; host != nil {
			*version = host.Version()
		}
	}
	for addr, users := range l.groups.users {
		m := Membership{Group: addr, Users: users, Answer: -1}
		if host := l.groups.hosts[protocolOf(addr)]; host != nil {
			m.Answer, m.Reporter = host.State(l.now, addr)
		}
		g.Members = append(g.Members, m)
	}
	return g
}
