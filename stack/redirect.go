package stack

import (
	"maps"
	"net/netip"

	"loam/link"
	"loam/stack/icmp"
	"loam/stack/ip"
	"loam/stack/neigh"
	"loam/wire"
)

// Redirects. A router names a neighbour that is a better first hop to a destination (RFC
// 1122 sections 3.2.2.2 and 3.3.1.2, RFC 4861 section 8). A receiver or a shard parses
// the message. The interface loop validates it and publishes the result with the tables.
// As on Linux, a redirect is not a route but an exception to one.
//
// An IPv6 redirect proves by its hop limit that a neighbour sent it. An IPv4 redirect may come from anywhere; it is accepted
// only if it quotes a packet that a socket of this host may have sent.

// redirectMessage is the content of a redirect.
type redirectMessage struct {
	from netip.Addr // address of the router that sent the redirect
	dst  netip.Addr
	via  netip.Addr // address of the better first hop
	mac  wire.MAC   // link-layer address of via; zero: the redirect does not include it
}

// followsRedirects reports whether the interface accepts redirects: it is on an Ethernet
// link, and this host is neither a router nor a gateway on it.
func (i *Interface) followsRedirects() bool {
	return i.medium == link.Ethernet && !i.loopback && !i.acceptAny && i.routing.Load() != routerSelf
}

// inputRedirect processes an IPv4 redirect, which quotes the start of a packet. Hosts treat redirects for a network or a type
// of service like redirects for a host (RFC 1122 section 3.2.2.2).
func (sh *shard) inputRedirect(p *packet, h wire.ICMPv4, quoted []byte) {
	q, ok := icmp.ParseQuote(quoted)
	switch {
	case !ok || !q.Dst.Is4() || h.Code > wire.MaxCodeRedirect:
		sh.tally.count(ICMPMalformed)
	case !p.ifc.followsRedirects():
		sh.tally.count(RedirectIgnored)
	case !sh.mayHaveSent(&q, p.ifc):
		sh.tally.count(RedirectUnsent)
	default:
		p.ifc.redirect(&sh.tally, redirectMessage{from: p.src, dst: q.Dst, via: h.Gateway()})
	}
}

// mayHaveSent reports whether a socket may have sent the quoted packet on an interface.
func (sh *shard) mayHaveSent(q *icmp.Quote, on *Interface) bool {
	local, remote := netip.AddrPortFrom(q.Src, q.SrcPort), netip.AddrPortFrom(q.Dst, q.DstPort)
	switch q.Protocol {
	case wire.ProtoTCP:
		c := sh.conns[flowOf(local, remote)]
		return c != nil && c.machine.HasSent(q.Seq)
	case wire.ProtoUDP, wire.ProtoUDPLite:
		return sh.table(q.Protocol).Find(remote, local, on.number()) != nil
	case wire.ProtoICMP:
		return sh.pinger(on, q.EchoID, q.Src) != nil
	}
	return false
}

// receiveRedirect processes an IPv6 redirect (RFC 4861 section 8.1).
func (r *receiver) receiveRedirect(p *packet) {
	b := p.payload()
	m, err := wire.ParseRedirect(b)
	switch {
	case !r.ifc.followsRedirects():
		r.tally.count6(RedirectIgnored)
	case err != nil || p.ttl != wire.NDHopLimit || !p.src.IsLinkLocalUnicast():
		r.tally.count6(NDMalformed)
	case !p.frame.ChecksumValid && !wire.ICMPv6ChecksumOK(b, p.src, p.dst):
		r.tally.count6(ICMPChecksum)
	default:
		r.ifc.redirect(&r.tally, redirectMessage{from: p.src, dst: m.Dst, via: m.Target, mac: m.LinkAddr})
	}
}

// redirect passes a message to the interface loop.
func (i *Interface) redirect(counts *tally, m redirectMessage) {
	select {
	case i.redirectsIn <- m:
	default:
		counts.countBy(m.from, RedirectOverflow)
	}
}

// receiveRedirect validates a redirect and applies it.
func (l *ifaceLoop) receiveRedirect(m *redirectMessage) {
	reason := l.judgeRedirect(m)
	l.stack.tally.countBy(m.from, reason)
	if reason == RedirectFollowed && !m.mac.IsZero() { // the message also names the hop's link-layer address (RFC 4861 section 8.3)
		l.ndp.Learn(l.now, m.via, m.mac, neigh.Asked)
	}
	l.publishDetours()
}

// judgeRedirect validates a redirect, and returns the counter of the result. RedirectFollowed means that it was accepted.
func (l *ifaceLoop) judgeRedirect(m *redirectMessage) Counter {
	t := l.stack.tables.Load()
	p, err := t.routeBy(l.Interface, netip.Addr{}, m.dst)
	switch {
	case err != nil || p.ifc != l.Interface || p.nextHop != m.from || p.nextHop == m.dst:
		return RedirectStranger
	case !t.isNeighbour(l.Interface, m):
		return RedirectOffLink
	case !l.redirects.Learn(l.now, m.dst, m.from, m.via):
		return RedirectOverflow
	}
	return RedirectFollowed
}

// isNeighbour reports whether the new first hop is another host on the link. For IPv6, wire.ParseRedirect has checked that.
func (t *tables) isNeighbour(ifc *Interface, m *redirectMessage) bool {
	if _, ours := t.local[m.via]; ours || m.via == m.from {
		return false
	}
	if m.via.Is6() {
		return true
	}
	for _, a := range t.addresses {
		if a.Interface == ifc.name && a.Prefix.Contains(m.via) {
			return true
		}
	}
	return false
}

// detourFailed removes redirects to a neighbour that does not answer. It reports whether
// there were any: then the waiting packets have another path.
func (l *ifaceLoop) detourFailed(addr netip.Addr) bool {
	failed := l.redirects.Failed(addr)
	l.publishDetours()
	return failed
}

// expireRedirects removes expired redirects.
func (l *ifaceLoop) expireRedirects() {
	l.redirects.Expire(l.now)
	l.publishDetours()
}

// publishDetours publishes the current redirects if they have changed.
func (l *ifaceLoop) publishDetours() {
	if all, changed := l.redirects.Detours(); changed {
		l.stack.setDetours(l.Interface, all)
	}
}

// setDetours publishes the redirects of an interface. The rest of the tables is shared with the previous version.
func (s *Stack) setDetours(ifc *Interface, all map[netip.Addr]ip.Detour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := *s.tables.Load()
	if t.byIndex(ifc.index) != ifc {
		return
	}
	t.detours = maps.Clone(t.detours)
	switch {
	case len(all) == 0:
		delete(t.detours, ifc.index)
	case t.detours == nil:
		t.detours = map[int]map[netip.Addr]ip.Detour{ifc.index: all}
	default:
		t.detours[ifc.index] = all
	}
	s.tables.Store(&t)
}

// redirected replaces the next hop of a path to dst if a redirect from that next hop applies.
func (t *tables) redirected(p path, dst netip.Addr) path {
	if len(t.detours) == 0 {
		return p
	}
	if d, ok := t.detours[p.ifc.index][dst]; ok && d.From == p.nextHop {
		p.nextHop = d.Via
	}
	return p
}
