package stack

import (
	"fmt"
	"net/netip"
)

// JoinGroup is Memberships.JoinGroup for a bound socket. It also returns ErrInvalid if the socket is bound to a specific
// address other than the group, so that it would receive nothing.
func (c *datagramSocket) JoinGroup(group netip.Addr, on *Interface) error {
	if err := c.canReceive(group); err != nil {
		return err
	}
	return c.Memberships.JoinGroup(group, on)
}

// JoinSourceSpecificGroup is Memberships.JoinSourceSpecificGroup for a bound socket. It also returns the errors of JoinGroup.
func (c *datagramSocket) JoinSourceSpecificGroup(group, source netip.Addr, on *Interface) error {
	if err := c.canReceive(group); err != nil {
		return err
	}
	return c.Memberships.JoinSourceSpecificGroup(group, source, on)
}

// canReceive returns an error if packets to a group cannot reach the address that the socket is bound to. Linux permits
// such a membership, which makes the host receive the group for other sockets. Programs on Loam can do the same with
// UDPOptions.Groups.
func (c *datagramSocket) canReceive(group netip.Addr) error {
	local := c.local.Addr().WithZone("")
	switch {
	case local == group.WithZone(""):
		return nil
	case !local.IsUnspecified(), local.Is6() && c.v6Only && group.Is4(), local.Is4() && group.Is6():
		return fmt.Errorf("join %v: the socket is bound to %v and would receive nothing: bind it to the group or to all addresses: %w", group, c.local, ErrInvalid)
	}
	return nil
}
