package group

import (
	"errors"
	"net/netip"
	"slices"
)

// Limits on the number of sources in a filter of a socket: the Linux defaults of net.ipv4.igmp_max_msf and
// net.ipv6.mld_max_msf.
const (
	maxSources4 = 10
	maxSources6 = 64
)

// Errors of a List.
var (
	ErrInUse        = errors.New("group: the socket is already a member")
	ErrNotAvailable = errors.New("group: there is no such membership or source")
	ErrInvalid      = errors.New("group: the membership has another filter mode")
	ErrTooMany      = errors.New("group: there are too many sources")
)

// List is the groups that a socket has joined, each on one interface and with a source filter (RFC 3678). Its rules are
// those of Linux. I identifies an interface. Addresses have no zone. The methods that change the list return what the owner
// applies to the Reception of that group and interface. The zero value is empty.
type List[I comparable] struct {
	members []joined[I]
}

// joined is a membership of the socket: one group on one interface.
type joined[I comparable] struct {
	group  netip.Addr
	on     I
	filter Filter // filter of the membership, with the sources in the order in which they were added
	listed bool   // the filter has had sources; adding a single source can no longer change its mode
}

// Change is a change of the filter with which a socket receives a group.
type Change[I comparable] struct {
	Group netip.Addr
	On    I

	enters, leaves bool // the socket becomes a member, or stops being one
	from, to       Filter
}

// Apply applies the change to the reception of the group on the interface.
func (c *Change[I]) Apply(r *Reception) {
	switch {
	case c.enters:
		r.Enter(c.to)
	case c.leaves:
		r.Leave(c.from)
	default:
		r.Change(c.from, c.to)
	}
}

// find returns the index of a membership; -1: none.
func (l *List[I]) find(group netip.Addr, on I) int {
	return slices.IndexFunc(l.members, func(m joined[I]) bool { return m.group == group && m.on == on })
}

// Join adds a membership that receives from all sources. Errors: ErrInUse.
func (l *List[I]) Join(group netip.Addr, on I) (Change[I], error) {
	if l.find(group, on) >= 0 {
		return Change[I]{}, ErrInUse
	}
	return l.enter(group, on, Everyone), nil
}

// Leave removes a membership. Errors: ErrNotAvailable.
func (l *List[I]) Leave(group netip.Addr, on I) (Change[I], error) {
	return l.leaveAt(l.find(group, on))
}

// LeaveAny removes the oldest membership of a group on any interface. Errors: ErrNotAvailable.
func (l *List[I]) LeaveAny(group netip.Addr) (Change[I], error) {
	return l.leaveAt(slices.IndexFunc(l.members, func(m joined[I]) bool { return m.group == group }))
}

func (l *List[I]) leaveAt(index int) (Change[I], error) {
	if index < 0 {
		return Change[I]{}, ErrNotAvailable
	}
	return l.leave(index), nil
}

// LeaveNewest removes the newest membership. ok is false if there is none.
func (l *List[I]) LeaveNewest() (c Change[I], ok bool) {
	if len(l.members) == 0 {
		return c, false
	}
	return l.leave(len(l.members) - 1), true
}

// AddSource adds a source to a filter, which then includes or excludes sources. While a filter has never had a source,
// adding one may change its mode. If the socket has not joined the group, including a source joins the group. Errors:
// ErrInvalid for a filter of the other mode, or to exclude without a membership; ErrTooMany; ErrNotAvailable if the
// filter has the source.
func (l *List[I]) AddSource(group, source netip.Addr, on I, exclude bool) (Change[I], error) {
	index := l.find(group, on)
	if index < 0 && !exclude {
		return l.enter(group, on, Filter{Sources: []netip.Addr{source}}), nil
	}
	if !l.hasMode(index, exclude) {
		return Change[I]{}, ErrInvalid
	}
	m := &l.members[index]
	switch {
	case len(m.filter.Sources) >= mostSources(m.group):
		return Change[I]{}, ErrTooMany
	case slices.Contains(m.filter.Sources, source):
		return Change[I]{}, ErrNotAvailable
	}
	m.listed = true
	return l.filter(index, Filter{Exclude: exclude, Sources: append(slices.Clone(m.filter.Sources), source)}), nil
}

// RemoveSource undoes AddSource. Removing the last included source leaves the group. Errors: ErrInvalid without a membership
// or for a filter of the other mode; ErrNotAvailable if the filter does not have the source.
func (l *List[I]) RemoveSource(group, source netip.Addr, on I, exclude bool) (Change[I], error) {
	index := l.find(group, on)
	if !l.hasMode(index, exclude) {
		return Change[I]{}, ErrInvalid
	}
	f := l.members[index].filter
	i := slices.Index(f.Sources, source)
	if i < 0 {
		return Change[I]{}, ErrNotAvailable
	}
	f.Sources = slices.Delete(slices.Clone(f.Sources), i, i+1)
	if f.None() {
		return l.leave(index), nil
	}
	return l.filter(index, f), nil
}

// hasMode reports whether the membership at index exists and its filter has the given mode, or may still change to it
// because it has never had a source.
func (l *List[I]) hasMode(index int, exclude bool) bool {
	return index >= 0 && (!l.members[index].listed || l.members[index].filter.Exclude == exclude)
}

// CheckFilter returns a filter for a group with copies of its sources, without zones. Errors: ErrTooMany; ErrNotAvailable for a source
// of the other IP version.
func CheckFilter(group netip.Addr, f Filter) (Filter, error) {
	if len(f.Sources) > mostSources(group) {
		return f, ErrTooMany
	}
	f.Sources = slices.Clone(f.Sources)
	for i, source := range f.Sources {
		if source.Is4() != group.Is4() {
			return f, ErrNotAvailable
		}
		f.Sources[i] = source.WithZone("")
	}
	return f, nil
}

// SetFilter replaces a filter by one that CheckFilter has returned. A filter that includes no source leaves the group.
// Errors: without a membership, ErrNotAvailable if the filter would leave the group, and otherwise ErrInvalid.
func (l *List[I]) SetFilter(group netip.Addr, on I, f Filter) (Change[I], error) {
	index := l.find(group, on)
	switch {
	case f.None():
		return l.leaveAt(index)
	case index < 0:
		return Change[I]{}, ErrInvalid
	}
	l.members[index].listed = len(f.Sources) > 0
	return l.filter(index, f), nil
}

// Filter returns a copy of the filter of a membership, with its sources in the order given. Errors: ErrNotAvailable.
func (l *List[I]) Filter(group netip.Addr, on I) (Filter, error) {
	index := l.find(group, on)
	if index < 0 {
		return Filter{}, ErrNotAvailable
	}
	f := l.members[index].filter
	f.Sources = slices.Clone(f.Sources)
	return f, nil
}

// Receives reports whether the socket is a member of a group on an interface, and whether it then receives from a source.
func (l *List[I]) Receives(group netip.Addr, on I, source netip.Addr) (received, isMember bool) {
	for i := range l.members {
		if m := &l.members[i]; m.on == on && m.group == group {
			return m.filter.Accepts(source), true
		}
	}
	return false, false
}

// mostSources returns the largest number of sources in a filter of a group.
func mostSources(group netip.Addr) int {
	if group.Is4() {
		return maxSources4
	}
	return maxSources6
}

// enter, filter and leave change the list of memberships.
func (l *List[I]) enter(group netip.Addr, on I, f Filter) Change[I] {
	l.members = append(l.members, joined[I]{group: group, on: on, filter: f, listed: len(f.Sources) > 0})
	return Change[I]{Group: group, On: on, enters: true, to: f}
}

func (l *List[I]) filter(index int, f Filter) Change[I] {
	m := &l.members[index]
	c := Change[I]{Group: m.group, On: m.on, from: m.filter, to: f}
	m.filter = f
	return c
}

func (l *List[I]) leave(index int) Change[I] {
	m := l.members[index]
	l.members = slices.Delete(l.members, index, index+1)
	return Change[I]{Group: m.group, On: m.on, leaves: true, from: m.filter}
}
