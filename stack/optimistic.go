package stack

import (
	"net/netip"
	"slices"

	"loam/link"
	"loam/stack/neigh"
	"loam/wire"
)

// Optimistic duplicate address detection for IPv6 (RFC 4429, decision 39). Addresses are used immediately, while other hosts
// may still object. Package neigh suppresses the messages that are not allowed meanwhile. This file has the rules for packets
// sent from such an address.

// trial returns the kind of duplicate detection for addresses of the interface: optimistic or not. A router must not
// use an address before detection has finished (RFC 4429 section 3.3).
func (i *Interface) trial() neigh.Trial {
	switch {
	case i.medium != link.Ethernet || i.noDetection:
		return neigh.Untried
	case i.acceptAny:
		return neigh.Tentative
	}
	return neigh.Optimistic
}

// settled reports whether addr is an address of the interface and its duplicate address detection has finished.
func (t *tables) settled(ifc *Interface, addr netip.Addr) bool {
	return t.local[addr].ifc == ifc && !t.onTrial(ifc, addr)
}

// onTrial reports whether an address of the interface is under duplicate detection.
func (t *tables) onTrial(ifc *Interface, addr netip.Addr) bool {
	return slices.ContainsFunc(t.tentative, func(a Address) bool {
		return a.Interface == ifc.name && a.Prefix.Addr() == addr
	})
}

// detour returns the link-layer address for a packet whose next hop is not resolved. A
// packet from an address under duplicate detection goes to the default router, if that is
// resolved, and the router forwards it (RFC 4429 section 3.2). Any other packet waits.
func (l *txLink) detour(nextHop netip.Addr, f *link.Frame) (wire.MAC, bool) {
	t := l.shard.tables
	if len(t.tentative) == 0 || isScoped(nextHop) {
		return wire.MAC{}, false
	}
	h, _, err := wire.ParseIPv6(f.Bytes())
	if err != nil || !t.onTrial(l.ifc, h.Src) {
		return wire.MAC{}, false
	}
	r, ok := t.lookup.Lookup(netip.IPv6Unspecified())
	if !ok || r.Interface != l.ifc.index || !r.Gateway.IsValid() {
		return wire.MAC{}, false
	}
	return l.neighbour(r.Gateway.WithZone(""))
}
