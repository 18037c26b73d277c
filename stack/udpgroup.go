package stack

import (
	"net/netip"
	"slices"
)

// Multicast groups of sockets. A socket hears a group on one interface, whose loop tells
// its link (groups.go).

// membership is a group that a socket hears.
type membership struct {
	group netip.Addr
	ifc   *Interface
}

// JoinGroup has the socket receive what is sent to a multicast group on an
// interface; nil is the one that it would send to the group by. Errors:
// ErrInvalid, ErrNoInterface, ErrInUse when it is a member already, ErrClosed.
func (c *datagramSocket) JoinGroup(group netip.Addr, on *Interface) error {
	if !group.IsMulticast() {
		return ErrInvalid
	}
	if on == nil && group.Zone() != "" {
		on = c.stack.tables.Load().zone(group.Zone())
	}
	group = group.WithZone("")
	if on == nil {
		p, err := c.stack.tables.Load().route(c.source(), group)
		if err != nil {
			return ErrNoInterface
		}
		on = p.ifc
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := membership{group, on}
	switch {
	case c.closed:
		return ErrClosed
	case slices.Contains(c.groups, m):
		return ErrInUse
	}
	c.groups = append(c.groups, m)
	on.join(group)
	return nil
}

// LeaveGroup undoes JoinGroup; without an interface, on whichever it is. Errors:
// ErrNotAvailable.
func (c *datagramSocket) LeaveGroup(group netip.Addr, on *Interface) error {
	group = group.WithZone("")
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range c.groups {
		if m.group == group && (on == nil || m.ifc == on) {
			c.groups = slices.Delete(c.groups, i, i+1)
			m.ifc.leave(group)
			return nil
		}
	}
	return ErrNotAvailable
}

// inGroup reports whether the socket hears a group on the interface of an index.
func (c *datagramSocket) inGroup(group netip.Addr, index int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.groups, func(m membership) bool { return m.group == group && m.ifc.index == index })
}

// leaveGroups undoes every JoinGroup, when the socket is closed; the caller holds c.mu.
func (c *datagramSocket) leaveGroups() {
	for _, m := range c.groups {
		m.ifc.leave(m.group)
	}
	c.groups = nil
}
