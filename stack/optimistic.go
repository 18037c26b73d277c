package stack

import (
	"net/netip"
	"slices"

	"loam/link"
	"loam/stack/neigh"
	"loam/wire"
)

// Addresses of IPv6 are used from the first moment on, while it is still being tried
// whether another host has them (RFC 4429, decision 39). What package neigh must not say
// meanwhile it does not say; here is what packets from such an address do.

// trial is what addresses of the interface have to pass. A router's are not used before
// (RFC 4429 section 3.3).
func (i *Interface) trial() neigh.Trial {
	switch {
	case i.medium != link.Ethernet || i.noDetection:
		return neigh.Untried
	case i.acceptAny:
		return neigh.Tentative
	}
	return neigh.Optimistic
}

// settled reports whether an interface has an address, and no other host has.
func (t *tables) settled(ifc *Interface, addr netip.Addr) bool {
	return t.local[addr].ifc == ifc && !t.onTrial(ifc, addr)
}

func (t *tables) onTrial(ifc *Interface, addr netip.Addr) bool {
	return slices.ContainsFunc(t.tentative, func(a Address) bool {
		return a.Interface == ifc.name && a.Prefix.Addr() == addr
	})
}

// detour is where a packet goes whose next hop is not known: from an address on trial to the
// default router, if that is known, which passes it on (RFC 4429 section 3.2). Otherwise it
// waits.
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
	return l.ifc.neighbour(r.Gateway.WithZone(""))
}
