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

// Redirects: a router says which neighbour is the better first hop to a destination (RFC 1122
// sections 3.2.2.2 and 3.3.1.2, RFC 4861 section 8). A receiver or a shard reads the message,
// the interface's loop judges it, and what it believes is published with the tables: there it
// is no route, as on Linux, but an exception to one.
//
// One of IPv6 proves by its hop limit that a neighbour has sent it. One of IPv4 may come from
// anywhere: it is heard if it quotes a packet that a socket of this host may have sent.

// redirectMessage is what a router has said.
type redirectMessage struct {
	from netip.Addr // the router
	dst  netip.Addr
	via  netip.Addr // the better first hop
	mac  wire.MAC   // of via; zero: not said
}

// followsRedirects reports whether the interface is a host's: of a link with several stations,
// and neither a router's nor the gateway's.
func (i *Interface) followsRedirects() bool {
	return i.medium == link.Ethernet && !i.loopback && !i.acceptAny && i.routing.Load() != routerSelf
}

// inputRedirect takes a redirect of IPv4, which quotes the front of a packet. Whether it is
// about a network or a type of service as well makes no difference to hosts (RFC 1122 section
// 3.2.2.2).
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

// mayHaveSent reports whether there is a socket that may have sent a packet by an interface.
func (sh *shard) mayHaveSent(q *icmp.Quote, on *Interface) bool {
	local, remote := netip.AddrPortFrom(q.Src, q.SrcPort), netip.AddrPortFrom(q.Dst, q.DstPort)
	switch q.Protocol {
	case wire.ProtoTCP:
		c := sh.conns[flowOf(local, remote)]
		return c != nil && c.machine.HasSent(q.Seq)
	case wire.ProtoUDP:
		return sh.socket(on, remote, local) != nil
	case wire.ProtoICMP:
		return sh.pinger(on, q.EchoID, q.Src) != nil
	}
	return false
}

// receiveRedirect reads a redirect of IPv6 (RFC 4861 section 8.1).
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

// redirect passes a message to the interface's owner.
func (i *Interface) redirect(counts *tally, m redirectMessage) {
	select {
	case i.redirectsIn <- m:
	default:
		counts.countBy(m.from, RedirectOverflow)
	}
}

// receiveRedirect judges a message, and does what it says if it is to be believed.
func (l *ifaceLoop) receiveRedirect(m *redirectMessage) {
	reason := l.judgeRedirect(m)
	l.stack.tally.countBy(m.from, reason)
	if reason == RedirectFollowed && !m.mac.IsZero() { // RFC 4861 section 8.3
		l.ndp.Learn(l.now, m.via, m.mac, neigh.Asked)
	}
	l.publishDetours()
}

// judgeRedirect says by the name of a counter what is to become of a message.
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

// isNeighbour reports whether the first hop that a message names is another host of the link.
// Of IPv6 wire.ParseRedirect has seen to that.
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

// detourFailed forgets what leads by way of a neighbour that does not answer. It reports
// whether anything did: then the packets that waited for it have another way.
func (l *ifaceLoop) detourFailed(addr netip.Addr) bool {
	failed := l.redirects.Failed(addr)
	l.publishDetours()
	return failed
}

// expireRedirects forgets what is older than its time.
func (l *ifaceLoop) expireRedirects() {
	l.redirects.Expire(l.now)
	l.publishDetours()
}

// publishDetours has everybody look up what has been believed and forgotten.
func (l *ifaceLoop) publishDetours() {
	if all, changed := l.redirects.Detours(); changed {
		l.stack.setDetours(l.Interface, all)
	}
}

// setDetours publishes what the redirects of an interface say. Nothing else of the tables is
// made anew.
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

// redirected leads a path to dst by way of the first hop that a router has named instead of
// the one that the routes do.
func (t *tables) redirected(p path, dst netip.Addr) path {
	if len(t.detours) == 0 {
		return p
	}
	if d, ok := t.detours[p.ifc.index][dst]; ok && d.From == p.nextHop {
		p.nextHop = d.Via
	}
	return p
}
