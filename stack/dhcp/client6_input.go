package dhcp

import (
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// The handling of messages received by the client of client6.go.

// Receive processes a message. A message that does not answer the current question is ignored (RFC 8415
// section 16).
func (c *Client6) Receive(now time.Duration, m *wire.DHCPv6) {
	if !c.question.answers(m, c.id) {
		return
	}
	if limit(&c.most, m.SolMaxRT); c.state == soliciting {
		c.question.most = c.most
	}
	switch {
	case m.Type == wire.DHCPv6Advertise && c.state == soliciting:
		c.advertised(now, m)
	case m.Type == wire.DHCPv6Reply && c.state == soliciting:
		if m.RapidCommit && usable6(m) {
			c.bind(now, m)
		}
	case m.Type == wire.DHCPv6Reply && c.state == declining:
		c.solicit(now)
	case m.Type == wire.DHCPv6Reply:
		c.replied(now, m)
	}
}

// advertised keeps an offer if it is better than the previous one. The offer is accepted at once if its
// server has the highest preference, or if the first wait is over (RFC 8415 section 18.2.1).
func (c *Client6) advertised(now time.Duration, m *wire.DHCPv6) {
	if !usable6(m) {
		if m.Status == wire.DHCPv6NoAddrs || m.IA != nil && m.IA.Status == wire.DHCPv6NoAddrs {
			c.none, c.changed = true, true
		}
		return
	}
	if c.offer.ServerID == nil || m.Preference > c.offer.Preference {
		c.offer = *m
	}
	if m.Preference == best || c.question.sent > 1 {
		c.request(now, &c.offer)
	}
}

// replied processes the reply to a request or to an extension (RFC 8415 section 18.2.10.1). After an error of the
// server, the message is sent again.
func (c *Client6) replied(now time.Duration, m *wire.DHCPv6) {
	switch {
	case c.state == requesting && !slices.Equal(m.ServerID, c.server):
	case m.Status == wire.DHCPv6NotOnLink, c.state == requesting && without(m):
		c.lose()
		c.solicit(now)
	case m.Status != wire.DHCPv6Success || m.IA == nil:
	// the server has no record of the lease, but may grant it in reply to a Request
	case m.IA.Status == wire.DHCPv6NoBinding && c.state != requesting:
		c.server, c.wanted = m.ServerID, c.held()
		c.enter(now, requesting)
	case m.IA.Status == wire.DHCPv6Success && sound(m.IA) && slices.ContainsFunc(m.IA.Addresses, usableAddress6):
		c.bind(now, m)
	}
}

// without reports whether a server's reply assigns no addresses (NoAddrsAvail).
func without(m *wire.DHCPv6) bool {
	return m.Status == wire.DHCPv6NoAddrs || m.Status == wire.DHCPv6Success && (m.IA == nil || m.IA.Status != wire.DHCPv6Success || !usable6(m))
}

// usable6 reports whether a message assigns an address.
func usable6(m *wire.DHCPv6) bool {
	return m.Status == wire.DHCPv6Success && m.IA != nil && m.IA.Status == wire.DHCPv6Success && sound(m.IA) &&
		slices.ContainsFunc(m.IA.Addresses, func(a wire.DHCPv6Address) bool { return usableAddress6(a) && a.Valid > 0 })
}

// sound reports whether T1 and T2 of an association are consistent (RFC 8415 section 21.4).
func sound(ia *wire.DHCPv6IA) bool { return ia.T1 <= ia.T2 || ia.T2 == 0 }

// usableAddress6 reports whether an address and its lifetimes are valid for a lease (RFC 8415 section 21.6).
func usableAddress6(a wire.DHCPv6Address) bool {
	return wire.IsHost6(a.Addr) && !a.Addr.IsLinkLocalUnicast() && a.Preferred <= a.Valid
}

// bind applies a server's reply. An address that the reply does not mention keeps its lifetimes. An address
// with a valid lifetime of zero is removed.
func (c *Client6) bind(now time.Duration, m *wire.DHCPv6) {
	c.state, c.server, c.none = bound6, m.ServerID, false
	c.question.answered()
	for _, a := range m.IA.Addresses {
		if usableAddress6(a) {
			c.learn(Address6{a.Addr, timer.Lifetime(now, a.Preferred), timer.Lifetime(now, a.Valid)}, a)
		}
	}
	if servers := believed(m.DNS); !slices.Equal(servers, c.dns) {
		c.dns, c.changed = servers, true
	}
	c.setTimes(now, m.IA)
	c.expire(now)
}

// learn adds or updates an address. If only its lifetimes change, the owner of the client is not notified.
func (c *Client6) learn(a Address6, said wire.DHCPv6Address) {
	if said.Preferred == 0 {
		a.Preferred = 0
	}
	i := slices.IndexFunc(c.addresses, func(b Address6) bool { return b.Addr == a.Addr })
	switch {
	case i >= 0:
		c.changed = c.changed || (a.Preferred == 0) != (c.addresses[i].Preferred == 0)
		c.addresses[i] = a
	case said.Valid > 0 && len(c.addresses) < maxAddresses:
		c.addresses, c.changed = append(c.addresses, a), true
	}
}

// setTimes sets the times t1 and t2 at which the client asks for an extension. If the server sends none, they are one half
// and four fifths of the shortest preferred lifetime. For addresses that are no longer preferred, the valid lifetime is used
// instead (RFC 8415 section 14.2).
func (c *Client6) setTimes(now time.Duration, ia *wire.DHCPv6IA) {
	least := uint32(wire.LifetimeForever)
	for _, a := range ia.Addresses {
		if a.Preferred > 0 {
			least = min(least, a.Preferred)
		} else if a.Valid > 0 {
			least = min(least, a.Valid)
		}
	}
	part := func(said uint32, percent time.Duration) time.Duration {
		switch {
		case said != 0:
			return timer.Lifetime(now, said)
		case least == wire.LifetimeForever:
			return timer.Never
		}
		return now + time.Duration(least)*time.Second*percent/100
	}
	c.t1, c.t2 = part(ia.T1, 50), part(ia.T2, 80)
	c.t1 = min(c.t1, c.t2)
}
