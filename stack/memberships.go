package stack

import (
	"net/netip"
	"slices"
	"sync"

	"loam/stack/group"
)

// Multicast groups of sockets, and filters of sources (RFC 3678). A socket hears a group on one
// interface, whose loop tells its link (groups.go).

// SourceFilter says of which sources a group is heard.
type SourceFilter = group.Filter

// How many sources a filter may have: what net.ipv4.igmp_max_msf and net.ipv6.mld_max_msf are
// on Linux if nobody changes them.
const (
	maxSources4 = 10
	maxSources6 = 64
)

// Memberships is the groups that a socket hears. It may be there before the socket, which
// takes it over by UDPOptions.Groups.
//
// An interface of nil is the one that a datagram to the group would leave by. All methods
// return ErrInvalid where group is none, ErrNoInterface where no interface is found, and
// ErrClosed.
type Memberships struct {
	stack  *Stack
	mu     sync.Mutex // guards what follows
	list   []membership
	closed bool
}

// membership is a group that a socket hears.
type membership struct {
	group  netip.Addr
	ifc    *Interface
	filter SourceFilter // sources as they were given
	listed bool         // there have been sources, which keeps single ones from changing the mode
}

// NewMemberships makes those of a socket that is yet to be made. Who makes none closes them.
func (s *Stack) NewMemberships() *Memberships { return &Memberships{stack: s} }

// JoinGroup has the socket receive what is sent to a multicast group on an interface, whoever
// sends it: in the range of source-specific multicast (RFC 4607), too, as on Linux, where
// routers that know the range ignore it. Errors: ErrInUse when it is a member already.
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

// everyone is heard by who joins a group.
var everyone = group.Everyone

// LeaveGroup ends hearing a group; without an interface, on whichever it is. Errors:
// ErrNotAvailable when it is not heard.
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

// JoinSourceSpecificGroup has the socket receive what one source, or one source more, sends to
// a group (IP_ADD_SOURCE_MEMBERSHIP, MCAST_JOIN_SOURCE_GROUP). Errors: ErrInvalid when the
// filter is one of sources that are not heard; ErrNotAvailable when the source is heard
// already, or is of another version of IP; ErrNoBuffers for more than 10 sources of IPv4, or
// 64 of IPv6.
func (m *Memberships) JoinSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.change(group, source, on, sourceChange{add: true})
}

// LeaveSourceSpecificGroup undoes JoinSourceSpecificGroup; of the last source, it leaves the
// group. Errors: ErrInvalid when the group is not heard or the filter is one of sources that
// are not; ErrNotAvailable when the source is not in it.
func (m *Memberships) LeaveSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.change(group, source, on, sourceChange{})
}

// ExcludeSourceSpecificGroup ends hearing one source of a group that was joined (IP_BLOCK_SOURCE,
// MCAST_BLOCK_SOURCE). Errors: those of JoinSourceSpecificGroup, and ErrInvalid when the group
// is not heard.
func (m *Memberships) ExcludeSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.change(group, source, on, sourceChange{exclude: true, add: true})
}

// IncludeSourceSpecificGroup undoes ExcludeSourceSpecificGroup. Errors: those of
// LeaveSourceSpecificGroup.
func (m *Memberships) IncludeSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	return m.change(group, source, on, sourceChange{exclude: true})
}

// SetSourceFilter replaces the filter of a group that is heard (IP_MSFILTER, MCAST_MSFILTER):
// INCLUDE of no source leaves the group. Errors: ErrInvalid when it is not heard,
// ErrNotAvailable when it is not and is to be left, or for sources of another version of IP;
// ErrNoBuffers for too many sources.
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

// SourceFilter is the filter by which a group is heard, its sources in the order in which they
// were given. Errors: ErrNotAvailable when it is not heard.
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

// Close leaves all groups; no other can be joined.
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

// place is a group on an interface, and where it is in the list; -1: it is not heard there.
type place struct {
	group netip.Addr
	ifc   *Interface
	index int
}

func (p place) member() bool { return p.index >= 0 }

// at finds a group. It leaves m.mu locked if there is no error.
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

// sourceChange says what is to become of a source in a filter.
type sourceChange struct {
	exclude bool // the mode of the filter that it is for
	add     bool
}

// change adds a source to a filter or removes it, by the rules of Linux: while a filter has
// had no source, adding one may change its mode.
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

// maxSources is how many sources a filter of a group may have.
func maxSources(group netip.Addr) int {
	if group.Is4() {
		return maxSources4
	}
	return maxSources6
}

// enter, filter and leave change the list, and tell the interface. The caller holds m.mu.
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

// hears reports whether the socket is in the group that a packet is to, where it arrived, and
// whether it hears the sender there.
func (m *Memberships) hears(p *packet) (heard, member bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.list {
		if has := &m.list[i]; has.group == p.dst && has.ifc.index == p.ifc.index {
			return has.filter.Hears(p.src), true
		}
	}
	return false, false
}

// hearsAsOthers reports whether a socket that is not in the group of a packet hears it because
// the host does.
func (c *datagramSocket) hearsAsOthers(p *packet) bool {
	c.mu.Lock()
	all := c.options.AllGroups6
	if p.dst.Is4() {
		all = c.options.AllGroups
	}
	c.mu.Unlock()
	return all && (p.dst == allHosts || p.dst == netip.IPv6LinkLocalAllNodes() || p.ifc.receptions.hears(p.dst, p.src))
}
