package stack

import (
	"net/netip"
	"sync"
	"time"

	"loam/link"
	"loam/stack/group"
	"loam/stack/tcp"
	"loam/wire"
)

// Multicast groups of an interface (RFC 1112, RFC 4291 section 2.7): who hears which, and
// what a link is told of that. The machines of package group are run by the interface's loop.
// A gateway faces one guest and hears everything, and "lo" is no link: neither says anything.

// receptions is what sockets and addresses want of the groups of an interface.
type receptions struct {
	mu sync.RWMutex // guards of
	of map[netip.Addr]*group.Reception
}

// change has f change what is wanted of a group.
func (r *receptions) change(addr netip.Addr, f func(*group.Reception)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[netip.Addr]*group.Reception)
	}
	wanted := r.of[addr]
	if wanted == nil {
		wanted = new(group.Reception)
		r.of[addr] = wanted
	}
	if f(wanted); wanted.Users() == 0 {
		delete(r.of, addr)
	}
}

// filter is by what a group is heard.
func (r *receptions) filter(addr netip.Addr) group.Filter {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if wanted := r.of[addr]; wanted != nil {
		return wanted.Filter()
	}
	return group.Filter{}
}

// joined reports whether anybody is in a group, whatever sources are heard.
func (r *receptions) joined(addr netip.Addr) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.of[addr] != nil
}

// hears reports whether anybody hears a source of a group.
func (r *receptions) hears(addr, source netip.Addr) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	wanted := r.of[addr]
	return wanted != nil && wanted.Hears(source)
}

// groupHosts is the machines of an interface, by wire.GroupProtocol; nil: nobody is told.
type groupHosts [2]*group.Host

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

// newGroupHosts begins without a group.
func (i *Interface) newGroupHosts() (hosts groupHosts) {
	if i.groupless {
		return hosts
	}
	seed := i.stack.seed ^ uint64(i.index)<<24
	hosts[wire.IGMP] = group.NewHost(group.Config{Protocol: wire.IGMP, Room: i.ipv4MTU() - groupHeaders[wire.IGMP], Seed: seed})
	if i.ipv6 {
		hosts[wire.MLD] = group.NewHost(group.Config{Protocol: wire.MLD, Room: leastMTU6 - groupHeaders[wire.MLD], Seed: ^seed})
	}
	return hosts
}

// protocolOf is the protocol by which a group is told of.
func protocolOf(group netip.Addr) wire.GroupProtocol {
	if group.Is4() {
		return wire.IGMP
	}
	return wire.MLD
}

// listen has change change what is wanted of a group, and the link be told of it.
func (i *Interface) listen(addr netip.Addr, change func(*group.Reception)) {
	i.receptions.change(addr, change)
	i.post(func(l *ifaceLoop) { l.tellOf(addr) })
}

// join and leave count an address that a group goes with.
func (l *ifaceLoop) join(addr netip.Addr) {
	l.receptions.change(addr, func(r *group.Reception) { r.Enter(everyone) })
	l.tellOf(addr)
}

func (l *ifaceLoop) leave(addr netip.Addr) {
	l.receptions.change(addr, func(r *group.Reception) { r.Leave(everyone) })
	l.tellOf(addr)
}

// tellOf gives the machine what is wanted of a group by now.
func (l *ifaceLoop) tellOf(addr netip.Addr) {
	if host := l.groups[protocolOf(addr)]; host != nil {
		host.Listen(l.now, addr, l.receptions.filter(addr))
	}
}

// renewGroups says again what was said when there was no address to say it from.
func (l *ifaceLoop) renewGroups() {
	if host := l.groups[wire.MLD]; host != nil {
		host.Renew(l.now)
	}
}

// receiveGroup takes a message from a shard.
func (l *ifaceLoop) receiveGroup(m *wire.GroupMessage) {
	if host := l.groups[m.Protocol]; host != nil {
		host.Receive(l.now, m)
	}
}

// sendGroups lets the machines act, and sends what they have to say.
func (l *ifaceLoop) sendGroups() {
	for _, host := range l.groups {
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
	for _, host := range l.groups {
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
		if host := l.groups[p]; host != nil {
			*version = host.Version()
		}
	}
	l.receptions.mu.RLock()
	defer l.receptions.mu.RUnlock()
	for addr, wanted := range l.receptions.of {
		m := Membership{Group: addr, Users: wanted.Users(), Answer: -1}
		if host := l.groups[protocolOf(addr)]; host != nil {
			m.Answer, m.Reporter = host.State(l.now, addr)
		}
		g.Members = append(g.Members, m)
	}
	return g
}

// SourceMention is a source that sockets' filters of a group name.
type SourceMention struct {
	Group, Source    netip.Addr
	Include, Exclude int // sockets, by the modes of their filters
}

// SourceMentions lists the sources that filters on the interface name, in no order.
func (i *Interface) SourceMentions() (list []SourceMention) {
	i.receptions.mu.RLock()
	defer i.receptions.mu.RUnlock()
	for addr, wanted := range i.receptions.of {
		for source, m := range wanted.Sources() {
			list = append(list, SourceMention{addr, source, m.Include, m.Exclude})
		}
	}
	return list
}
