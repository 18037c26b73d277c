package stack

import (
	"net/netip"
	"slices"

	"loam/link"
	"loam/stack/neigh"
	"loam/wire"
)

// Neighbor Discovery of an interface: the IPv6 counterpart of ARP in the interface loop.

// firstAddress6 adds the link-local address of an interface (RFC 4291 section 2.5.6).
// Links without link-layer addresses have none.
func (s *Stack) firstAddress6(ifc *Interface) error {
	if !ifc.ipv6 || ifc.medium != link.Ethernet {
		return nil
	}
	return s.AddAddress(ifc.name, netip.PrefixFrom(wire.LinkLocal6(ifc.mac), 64))
}

// ready is called when duplicate address detection has found no conflict.
func (l *ifaceLoop) ready(addr netip.Addr) {
	if l.trial() == neigh.Untried || addr.Is4() {
		return
	}
	l.stack.change(func(t *tables) error {
		t.tentative = slices.DeleteFunc(t.tentative, func(a Address) bool {
			return a.Interface == l.name && a.Prefix.Addr() == addr
		})
		return nil
	})
	if addr == wire.LinkLocal6(l.mac) {
		l.renewGroups()
		l.linkLocalReady()
	}
	if l.auto != nil {
		l.auto.Answer()
	}
}

// duplicate is called when another host uses one of our IPv6 addresses. An address under
// duplicate detection is removed (RFC 4862 section 5.4.5); others stay.
func (l *ifaceLoop) duplicate(addr netip.Addr) {
	if !l.stack.giveUp(l.Interface, addr) {
		return
	}
	l.leave(wire.SolicitedNode(addr))
	if l.auto != nil {
		l.auto.Refused(l.now, addr)
	}
}

// giveUp removes an address under duplicate detection and reports whether there was one. It waits for concurrent changes: an
// address is announced before it is in the tables, and another host may object in between.
func (s *Stack) giveUp(ifc *Interface, addr netip.Addr) bool {
	err := s.change(func(t *tables) error {
		i := slices.IndexFunc(t.tentative, func(a Address) bool { return a.Interface == ifc.name && a.Prefix.Addr() == addr })
		if i < 0 || !t.removeAddress(t.tentative[i]) {
			return ErrNotFound
		}
		return nil
	})
	return err == nil
}

// conflictCounter returns the counter of address conflicts for an address.
func conflictCounter(addr netip.Addr) Counter {
	if addr.Is4() {
		return ARPConflict
	}
	return NDConflict
}

// lookup returns the cache entry of a next hop, from ARP or Neighbor Discovery.
func (l *ifaceLoop) lookup(addr netip.Addr) (wire.MAC, neigh.Answer) {
	if addr.Is4() {
		return l.arp.Lookup(l.now, addr)
	}
	return l.ndp.Lookup(l.now, addr)
}

// confirmed records that a next hop is reachable.
func (l *ifaceLoop) confirmed(addr netip.Addr) {
	if addr.Is4() {
		l.arp.Confirm(l.now, addr)
		return
	}
	l.ndp.Confirm(l.now, addr)
}

// event returns the next event of the ARP cache or of the Neighbor Discovery cache.
func (l *ifaceLoop) event() (neigh.Event, bool) {
	if e, ok := l.arp.Event(); ok {
		return e, true
	}
	return l.ndp.Event()
}

// sendND sends the pending messages of the Neighbor Discovery machine.
func (l *ifaceLoop) sendND() {
	var m neigh.Message
	for l.ndp.Poll(l.now, &m) {
		if l.medium != link.Ethernet {
			continue
		}
		f := link.NewFrame(m.Len())
		m.Put(f.Bytes())
		l.sendDiscovery(f, m.Src, m.Dst, m.MAC)
	}
}

// sendDiscovery fills in the checksum of a Neighbor Discovery message and sends it.
func (l *ifaceLoop) sendDiscovery(f *link.Frame, src, dst netip.Addr, mac wire.MAC) {
	wire.PutICMPv6Checksum(f.Bytes(), src, dst)
	putIPv6(f, &wire.IPv6{NextHeader: wire.ProtoICMPv6, HopLimit: wire.NDHopLimit, Src: src, Dst: dst})
	l.stack.tally.add6(IPv6BytesSent, uint64(f.Len()))
	l.sendEthernet(mac, wire.TypeIPv6, f)
	l.stack.tally.count6(NDSent)
}

// noRouter processes an advertisement of a neighbour that is not, or no longer, a router.
func (l *ifaceLoop) noRouter(m *neigh.Message) {
	if !m.Advertisement || m.Router {
		return
	}
	l.redirects.NotRouter(m.Target)
	l.publishDetours()
	if l.auto != nil {
		l.auto.NotRouter(l.now, m.Target)
	}
}
