package stack

import (
	"net/netip"
	"slices"
	"sync"

	"loam/stack/group"
)

// Multicast groups of sockets, and source filters (RFC 3678). A membership applies to one
// interface, whose loop reports it to the link (groups.go).

// SourceFilter selects the sources from which datagrams to a group are received.
type SourceFilter = group.Filter

// Limits on the number of sources in a filter: the Linux defaults of
// net.ipv4.igmp_max_msf and net.ipv6.mld_max_msf.
const (
	maxSources4 = 10
	maxSources6 = 64
)

// Memberships is the set of multicast groups of a socket. It can be created before the
// socket, which takes it over through UDPOptions.Groups.
//
// A nil interface stands for the interface of the route to the group. All methods return
// ErrInvalid if group is not a multicast address, ErrNoInterface if no interface is
// found, and ErrClosed.
type Memberships struct {
	stack  *Stack
	mu     sync.Mutex // guards what follows
	list   []membership
	closed bool
}

// membership is one group on one interface.
type membership struct {
	group  netip.Addr
	ifc    *Interface
	filter SourceFilter // with the sources in the order given
	listed bool         // the filter has had sources; single sources can no longer change its mode
}

// NewMemberships returns the memberships for a socket created later. If no socket takes
// it over, the caller must close it.
func (s *Stack) NewMemberships() *Memberships { return &Memberships{stack: s} }

// JoinGroup joins a multicast group on an interface and receives from all sources. As on
// Linux, this is allowed in the source-specific range (RFC 4607) too, where routers
// ignore it. Errors: ErrInUse if the socket is already a member.
func (m *Memberships) JoinGroup(group netip.Addr, on *Interface) error {
	at, err := m.at(group, on)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	if at.member() {
		return ErrInUse
	}
	m.enter(at, everyone)
	return nil
}

// everyone is the filter after JoinGroup: all sources.
var everyone = group.Everyone

// LeaveGroup leaves a group; with a nil interface, on whichever interface it was joined.
// Errors: ErrNotAvailable if the socket is not a member.
func (m *Memberships) LeaveGroup(group netip.Addr, on *Interface) error {
	group = group.WithZone("")
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, has := range m.list {
		if has.group == group && (on == nil || has.ifc == on) {
			m.leave(i)
			return nil
		}
	}
	return ErrNotAvailable
}

// JoinSourceSpecificGroup joins a group for a single source, or adds a source to an
// existing membership (IP_ADD_SOURCE_MEMBERSHIP, MCAST_JOIN_SOURCE_GROUP). Errors:
// ErrInvalid if the membership excludes sources; ErrNotAvailable if the source is already
// included or has another IP version; ErrNoBuffers for more than 10 IPv4 or 64 IPv6
// sources.
func (m *Memberships) JoinSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.change(group, source, on, sourceChange{add: true})
}

// LeaveSourceSpecificGroup removes a source that JoinSourceSpecificGroup has added.
// Removing the last source leaves the group. Errors: ErrInvalid if the socket is not a
// member or the membership excludes sources; ErrNotAvailable if the source is not in the
// filter.
func (m *Memberships) LeaveSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.change(group, source, on, sourceChange{})
}

// ExcludeSourceSpecificGroup excludes a source from a group that was joined
// (IP_BLOCK_SOURCE, MCAST_BLOCK_SOURCE). Errors: those of JoinSourceSpecificGroup, and
// ErrInvalid if the socket is not a member.
func (m *Memberships) ExcludeSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.change(group, source, on, sourceChange{exclude: true, add: true})
}

// IncludeSourceSpecificGroup undoes ExcludeSourceSpecificGroup. Errors: those of
// LeaveSourceSpecificGroup.
func (m *Memberships) IncludeSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.change(group, source, on, sourceChange{exclude: true})
}

// SetSourceFilter replaces the filter of a membership (IP_MSFILTER, MCAST_MSFILTER). A
// filter that includes no source leaves the group. Errors: ErrInvalid if the socket is
// not a member; ErrNotAvailable if it is not a member and the filter would leave the
// group, or if a source has another IP version; ErrNoBuffers for too many sources.
func (m *Memberships) SetSourceFilter(group netip.Addr, on *Interface, f SourceFilter) error {
	if len(f.Sources) > maxSources(group) {
		return ErrNoBuffers
	}
	f.Sources = slices.Clone(f.Sources)
	for i, source := range f.Sources {
		if source.Is4() != group.Is4() {
			return ErrNotAvailable
		}
		f.Sources[i] = source.WithZone("")
	}
	at, err := m.at(group, on)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	switch {
	case f.None() && !at.member():
		return ErrNotAvailable
	case f.None():
		m.leave(at.index)
	case !at.member():
		return ErrInvalid
	default:
		m.list[at.index].listed = len(f.Sources) > 0
		m.filter(at.index, f)
	}
	return nil
}

// SourceFilter returns the filter of a membership, with its sources in the order given.
// Errors: ErrNotAvailable if the socket is not a member.
func (m *Memberships) SourceFilter(group netip.Addr, on *Interface) (SourceFilter, error) {
	at, err := m.at(group, on)
	if err != nil {
		return SourceFilter{}, err
	}
	defer m.mu.Unlock()
	if !at.member() {
		return SourceFilter{}, ErrNotAvailable
	}
	f := m.list[at.index].filter
	f.Sources = slices.Clone(f.Sources)
	return f, nil
}

// Close leaves all groups and rejects new ones. Errors: ErrClosed.
func (m *Memberships) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.closed = true
	for len(m.list) > 0 {
		m.leave(len(m.list) - 1)
	}
	return nil
}

// place is a group on an interface, and its index in the list of memberships; -1: not a
// member.
type place struct {
	group netip.Addr
	ifc   *Interface
	index int
}

func (p place) member() bool { return p.index >= 0 }

// at finds the membership of a group on an interface. If it returns no error, m.mu is
// locked and the caller must unlock it.
func (m *Memberships) at(group netip.Addr, on *Interface) (place, error) {
	if !group.IsMulticast() {
		return place{}, ErrInvalid
	}
	t := m.stack.tables.Load()
	if on == nil && group.Zone() != "" {
		on = t.zone(group.Zone())
	}
	group = group.WithZone("")
	if on == nil {
		p, err := t.route(netip.Addr{}, group)
		if err != nil {
			return place{}, ErrNoInterface
		}
		on = p.ifc
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return place{}, ErrClosed
	}
	return place{group, on, slices.IndexFunc(m.list, func(has membership) bool { return has.group == group && has.ifc == on })}, nil
}

// sourceChange describes a change of one source in a filter.
type sourceChange struct {
	exclude bool // the filter mode that the change requires
	add     bool
}

// change adds a source to a filter or removes it, by the rules of Linux: while a filter
// has never had a source, adding one may change its mode.
func (m *Memberships) change(group, source netip.Addr, on *Interface, c sourceChange) error {
	if group.Is4() != source.Is4() {
		return ErrNotAvailable
	}
	source = source.WithZone("")
	at, err := m.at(group, on)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	if !at.member() {
		if c.exclude || !c.add {
			return ErrInvalid
		}
		m.enter(at, SourceFilter{Sources: []netip.Addr{source}})
		return nil
	}
	has := &m.list[at.index]
	if has.listed && has.filter.Exclude != c.exclude {
		return ErrInvalid
	}
	if !c.add {
		return m.removeSource(at.index, source)
	}
	return m.addSource(at.index, source, c.exclude)
}

// addSource adds a source to a filter and sets its mode. The caller holds m.mu.
func (m *Memberships) addSource(index int, source netip.Addr, exclude bool) error {
	has := &m.list[index]
	switch {
	case len(has.filter.Sources) >= maxSources(has.group):
		return ErrNoBuffers
	case slices.Contains(has.filter.Sources, source):
		return ErrNotAvailable
	}
	has.listed = true
	m.filter(index, SourceFilter{Exclude: exclude, Sources: append(slices.Clone(has.filter.Sources), source)})
	return nil
}

// removeSource removes a source from a filter, and leaves the group if the filter then
// accepts none. The caller holds m.mu.
func (m *Memberships) removeSource(index int, source netip.Addr) error {
	f := m.list[index].filter
	i := slices.Index(f.Sources, source)
	if i < 0 {
		return ErrNotAvailable
	}
	f.Sources = slices.Delete(slices.Clone(f.Sources), i, i+1)
	if f.None() {
		m.leave(index)
		return nil
	}
	m.filter(index, f)
	return nil
}

// maxSources returns the largest number of sources in a filter of a group.
func maxSources(group netip.Addr) int {
	if group.Is4() {
		return maxSources4
	}
	return maxSources6
}

// enter, filter and leave change the list and notify the interface. The caller holds
// m.mu.
func (m *Memberships) enter(at place, f SourceFilter) {
	m.list = append(m.list, membership{group: at.group, ifc: at.ifc, filter: f, listed: len(f.Sources) > 0})
	at.ifc.listen(at.group, func(r *group.Reception) { r.Enter(f) })
}

func (m *Memberships) filter(index int, f SourceFilter) {
	has := &m.list[index]
	was := has.filter
	has.filter = f
	has.ifc.listen(has.group, func(r *group.Reception) { r.Change(was, f) })
}

func (m *Memberships) leave(index int) {
	has := m.list[index]
	m.list = slices.Delete(m.list, index, index+1)
	has.ifc.listen(has.group, func(r *group.Reception) { r.Leave(has.filter) })
}

// receives reports whether the socket is a member of the packet's group on the interface
// where it arrived, and whether its filter accepts the source.
func (m *Memberships) receives(p *packet) (received, member bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.list {
		if has := &m.list[i]; has.group == p.dst && has.ifc.index == p.ifc.index {
			return has.filter.Accepts(p.src), true
		}
	}
	return false, false
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
