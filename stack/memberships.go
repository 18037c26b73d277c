package stack

import (
	"net/netip"
	"sync"

	"loam/stack/group"
)

// Multicast groups of sockets, and source filters (RFC 3678). A membership applies to one
// interface, whose loop reports it to the link (groups.go).

// SourceFilter selects the sources from which datagrams to a group are received.
type SourceFilter = group.Filter

// Memberships is the set of multicast groups of a socket. It can be created before the
// socket, which takes it over through UDPOptions.Groups.
//
// A nil interface stands for the interface of the route to the group. All methods return ErrInvalid if group is not a
// multicast address, ErrNoInterface if no interface is found, and ErrClosed.
type Memberships struct {
	stack  *Stack
	mu     sync.Mutex // guards the fields below
	list   group.List[*Interface]
	closed bool
}

// NewMemberships returns the memberships for a socket created later. If no socket takes it over, the caller must close it.
func (s *Stack) NewMemberships() *Memberships { return &Memberships{stack: s} }

// JoinGroup joins a multicast group on an interface and receives from all sources. As on Linux, this is allowed in the
// source-specific range (RFC 4607) too, where routers ignore it. Errors: ErrInUse if the socket is already a member.
func (m *Memberships) JoinGroup(group netip.Addr, on *Interface) error {
	return m.change(group, on, m.list.Join)
}

// everyone is the filter after JoinGroup: all sources.
var everyone = group.Everyone

// LeaveGroup leaves a group; with a nil interface, on whichever interface it was joined.
// Errors: ErrNotAvailable if the socket is not a member.
func (m *Memberships) LeaveGroup(group netip.Addr, on *Interface) error {
	group = group.WithZone("")
	m.mu.Lock()
	defer m.mu.Unlock()
	if on == nil {
		return apply(m.list.LeaveAny(group))
	}
	return apply(m.list.Leave(group, on))
}

// JoinSourceSpecificGroup joins a group for a single source, or adds a source to an existing membership
// (IP_ADD_SOURCE_MEMBERSHIP, MCAST_JOIN_SOURCE_GROUP). Errors: ErrInvalid if the membership excludes sources; ErrNotAvailable
// if the source is already included or has another IP version; ErrNoBuffers for more than 10 IPv4 or 64 IPv6 sources.
func (m *Memberships) JoinSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.changeSource(group, source, on, m.list.AddSource, false)
}

// LeaveSourceSpecificGroup removes a source that JoinSourceSpecificGroup has added. Removing the last source leaves the group.
// Errors: ErrInvalid if the socket is not a member or the membership excludes sources; ErrNotAvailable if the source is not in
// the filter.
func (m *Memberships) LeaveSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.changeSource(group, source, on, m.list.RemoveSource, false)
}

// ExcludeSourceSpecificGroup excludes a source from a group that was joined (IP_BLOCK_SOURCE, MCAST_BLOCK_SOURCE). Errors:
// those of JoinSourceSpecificGroup, and ErrInvalid if the socket is not a member.
func (m *Memberships) ExcludeSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.changeSource(group, source, on, m.list.AddSource, true)
}

// IncludeSourceSpecificGroup undoes ExcludeSourceSpecificGroup. Errors: those of LeaveSourceSpecificGroup.
func (m *Memberships) IncludeSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.changeSource(group, source, on, m.list.RemoveSource, true)
}

// SetSourceFilter replaces the filter of a membership (IP_MSFILTER, MCAST_MSFILTER). A filter that includes no source leaves
// the group. Errors: ErrInvalid if the socket is not a member; ErrNotAvailable if it is not a member and the filter would
// leave the group, or if a source has another IP version; ErrNoBuffers for too many sources.
func (m *Memberships) SetSourceFilter(addr netip.Addr, on *Interface, f SourceFilter) error {
	f, err := group.CheckFilter(addr, f)
	if err != nil {
		return groupError(err)
	}
	return m.change(addr, on, func(addr netip.Addr, on *Interface) (groupChange, error) {
		return m.list.SetFilter(addr, on, f)
	})
}

// SourceFilter returns the filter of a membership, with its sources in the order given.
// Errors: ErrNotAvailable if the socket is not a member.
func (m *Memberships) SourceFilter(group netip.Addr, on *Interface) (SourceFilter, error) {
	group, on, err := m.lockAt(group, on)
	if err != nil {
		return SourceFilter{}, err
	}
	defer m.mu.Unlock()
	f, err := m.list.Filter(group, on)
	return f, groupError(err)
}

// Close leaves all groups and rejects new ones. Errors: ErrClosed.
func (m *Memberships) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.closed = true
	for c, ok := m.list.LeaveNewest(); ok; c, ok = m.list.LeaveNewest() {
		apply(c, nil)
	}
	return nil
}

// lockAt returns a group without a zone, and its interface. If it returns no error, m.mu is locked and the caller must unlock it.
func (m *Memberships) lockAt(group netip.Addr, on *Interface) (netip.Addr, *Interface, error) {
	if !group.IsMulticast() {
		return group, nil, ErrInvalid
	}
	t := m.stack.tables.Load()
	if on == nil && group.Zone() != "" {
		on = t.zone(group.Zone())
	}
	group = group.WithZone("")
	if on == nil {
		p, err := t.route(netip.Addr{}, group)
		if err != nil {
			return group, nil, ErrNoInterface
		}
		on = p.ifc
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return group, nil, ErrClosed
	}
	return group, on, nil
}

type groupChange = group.Change[*Interface]

// change calls f to change the list, and notifies the interface.
func (m *Memberships) change(group netip.Addr, on *Interface, f func(netip.Addr, *Interface) (groupChange, error)) error {
	group, on, err := m.lockAt(group, on)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	return apply(f(group, on))
}

// changeSource is like change, for one source of a filter.
func (m *Memberships) changeSource(group, source netip.Addr, on *Interface,
	f func(group, source netip.Addr, on *Interface, exclude bool) (groupChange, error), exclude bool) error {
	if group.Is4() != source.Is4() {
		return ErrNotAvailable
	}
	return m.change(group, on, func(group netip.Addr, on *Interface) (groupChange, error) {
		return f(group, source.WithZone(""), on, exclude)
	})
}

// apply notifies the interface of a change, unless there is an error. The caller holds Memberships.mu.
func apply(c groupChange, err error) error {
	if err == nil {
		c.On.listen(c.Group, c.Apply)
	}
	return groupError(err)
}

// groupError translates an error of package group.
func groupError(err error) error {
	switch err {
	case nil:
		return nil
	case group.ErrInUse:
		return ErrInUse
	case group.ErrInvalid:
		return ErrInvalid
	case group.ErrTooMany:
		return ErrNoBuffers
	default:
		return ErrNotAvailable
	}
}

// receives reports whether the socket is a member of the packet's group on the interface
// where it arrived, and whether its filter accepts the source.
func (m *Memberships) receives(p *packet) (received, member bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list.Receives(p.dst, p.ifc, p.src)
}

// receivesAsOthers reports whether a socket receives a packet to a group that it has not
// joined: a group of all hosts, or one that other sockets have joined (IP_MULTICAST_ALL).
func (c *datagramSocket) receivesAsOthers(p *packet) bool {
	c.mu.Lock()
	all := c.options.AllGroups6
	if p.dst.Is4() {
		all = c.options.AllGroups
	}
	c.mu.Unlock()
	return all && (p.dst == allHosts || p.dst == netip.IPv6LinkLocalAllNodes() || p.ifc.receptions.receives(p.dst, p.src))
}
