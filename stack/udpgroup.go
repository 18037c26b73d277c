package stack

import (
	"net/netip"
	"slices"
)

// Multicast groups (RFC 1112, RFC 4291 section 2.7). A socket hears a group on one
// interface. Nobody is told: a link's switches that ask who wants what (IGMP, MLD) get
// no answer.

// membership is a group that a socket hears.
type membership struct {
	group netip.Addr
	ifc   *Interface
}

// JoinGroup has the socket receive what is sent to a multicast group on an
// interface; nil is the one that it would send to the group by. Errors:
// ErrInvalid, ErrNoInterface, ErrInUse when it is a member already.
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
	if slices.Contains(c.groups, m) {
		return ErrInUse
	}
	c.groups = append(c.groups, m)
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

// Groups counts the sockets that hear each multicast group on the interface.
func (i *Interface) Groups() map[netip.Addr]int {
	users := map[netip.Addr]int{}
	count := func(sh *shard) {
		for _, list := range sh.sockets {
			for _, c := range list {
				c.mu.Lock()
				for _, m := range c.groups {
					if m.ifc == i {
						users[m.group]++
					}
				}
				c.mu.Unlock()
			}
		}
	}
	i.stack.shards[0].request(count) // each shard knows them all
	return users
}
