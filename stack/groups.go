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

// Multicast groups of an interface (RFC 1112, RFC 4291 section 2.7): which groups sockets receive, and what is reported
// to the link. The interface loop runs the state machines of package group. An interface with AcceptAny faces one guest
// and receives everything, and "lo" has no link; neither reports groups.

// receptions is the set of groups that sockets and addresses of an interface need.
type receptions struct {
	mu sync.RWMutex // guards the field named of
	of map[netip.Addr]*group.Reception
}

// change calls f on the record (group.Reception) of a group's users. A record without users is removed afterwards.
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

// filter returns the source filter of a group that results from the filters of all its users.
func (r *receptions) filter(addr netip.Addr) group.Filter {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if wanted := r.of[addr]; wanted != nil {
		return wanted.Filter()
	}
	return group.Filter{}
}

// joined reports whether a group has any users, whatever their source filters.
func (r *receptions) joined(addr netip.Addr) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.of[addr] != nil
}

// receives reports whether any user of a group accepts a source.
func (r *receptions) receives(addr, source netip.Addr) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	wanted := r.of[addr]
	return wanted != nil && wanted.Accepts(source)
}

// groupHosts has the state machines (package group) of an interface, by wire.GroupProtocol: one for IGMP and one for
// MLD. nil: groups are not reported.
type groupHosts [2]*group.Host

// groupHeaders has the length of the IP headers of IGMP and MLD messages, in bytes, including the Router Alert option.
var groupHeaders = [...]int{
	wire.IGMP: wire.IPv4MinLen + len(routerAlert4),
	wire.MLD:  wire.IPv6Len + wire.IPv6ExtMinLen,
}

// routerAlert4 is the IPv4 option Router Alert, which makes routers inspect a packet (RFC 2113).
var routerAlert4 = []byte{byte(wire.OptRouterAlert), 4, 0, 0}

// routerAlert6 is an IPv6 hop-by-hop options header with Router Alert and padding (RFC 2711).
var routerAlert6 = wire.IPv6Ext{Next: wire.ProtoICMPv6, Data: []byte{wire.IPv6OptRouterAlert, 2, 0, 0, 1, 0}}

// leastMTU6 is the minimum IPv6 MTU in bytes. Reports fit into it, so that they do not
// depend on the MTU that routers advertise.
const leastMTU6 = 1280

// newGroupHosts returns the IGMP and MLD state machines of an interface, without any group.
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

// protocolOf returns the protocol that reports a group.
func protocolOf(group netip.Addr) wire.GroupProtocol {
	if group.Is4() {
		return wire.IGMP
	}
	return wire.MLD
}

// listen calls the function change on the record of a group's users, and reports the resulting change to
// the link. It may be called on any goroutine.
func (i *Interface) listen(addr netip.Addr, change func(*group.Reception)) {
	i.receptions.change(addr, change)
	i.post(func(l *ifaceLoop) { l.updateFilter(addr) })
}

// join makes the interface receive a multicast group that one of its addresses needs. leave is called
// when no address needs the group any more.
func (l *ifaceLoop) join(addr netip.Addr) {
	l.receptions.change(addr, func(r *group.Reception) { r.Enter(everyone) })
	l.updateFilter(addr)
}

func (l *ifaceLoop) leave(addr netip.Addr) {
	l.receptions.change(addr, func(r *group.Reception) { r.Leave(everyone) })
	l.updateFilter(addr)
}

// updateFilter passes the current source filter of a group to the IGMP or MLD state machine that reports the group.
func (l *ifaceLoop) updateFilter(addr netip.Addr) {
	if host := l.groups[protocolOf(addr)]; host != nil {
		host.Listen(l.now, addr, l.receptions.filter(addr))
	}
}

// renewGroups repeats the MLD reports that were sent before there was a usable source address.
func (l *ifaceLoop) renewGroups() {
	if host := l.groups[wire.MLD]; host != nil {
		host.Renew(l.now)
	}
}

// receiveGroup processes an IGMP or MLD message that a shard has passed on.
func (l *ifaceLoop) receiveGroup(m *wire.GroupMessage) {
	if host := l.groups[m.Protocol]; host != nil {
		host.Receive(l.now, m)
	}
}

// sendGroups runs the timers of the IGMP and MLD machines and sends their messages.
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

// sendGroup sends a message with TTL 1, so that no router forwards it, and with Router
// Alert, so that every router inspects it (RFC 9776 section 4, RFC 9777 section 5).
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
		if !t.settled(l.Interface, src) { // duplicate detection has not finished (RFC 3590 section 4)
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

// Groups describes the multicast groups of an interface.
type Groups struct {
	IGMP, MLD int // versions of IGMP and MLD in use
	Members   []Membership
}

// Membership is a group that is received on an interface.
type Membership struct {
	Group    netip.Addr
	Users    int           // number of sockets that have joined the group, and of addresses that need it
	Answer   time.Duration // time until a query about the group is answered; negative: no answer is due
	Reporter bool          // no other host has reported the group since this one did
}

// Groups returns the groups received on the interface, in no particular order. Groups
// that every host receives are included only if a socket has joined them.
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

// listGroups does the work of Interface.Groups. It runs on the loop.
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

// SourceMention describes a source address that the source filters of sockets contain for a group.
type SourceMention struct {
	Group, Source    netip.Addr
	Include, Exclude int // numbers of sockets with a filter that includes or excludes the listed sources
}

// SourceMentions returns the sources in filters on the interface, in no particular order.
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
