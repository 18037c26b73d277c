package autoconf

import (
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// Learning from router advertisements, and removing expired data.

// minMTU is the minimum MTU of an IPv6 link (RFC 8200 section 5).
const minMTU = 1280

// twoHours is the part of an address's lifetime that an advertisement cannot shorten, since advertisements
// are not authenticated (RFC 4862 section 5.5.3 (e)).
const twoHours = 2 * time.Hour

// Limits of the advertised timers. maxReachable is the limit for routers in RFC 4861 section 6.2.1. The other
// limits are ours: they keep address tests and neighbour timeouts short, and prevent floods of solicitations.
const (
	maxReachable  = time.Hour
	minRetransmit = 10 * time.Millisecond
	maxRetransmit = 10 * time.Second
)

// Receive processes an advertisement. The caller has verified that it came from a link-local address with a
// hop limit of 255 and a correct checksum (RFC 4861 section 6.3.4).
func (h *Host) Receive(now time.Duration, from netip.Addr, a *wire.RouterAdvertisement) {
	h.counters.Advertisements++
	h.expire(now)
	delete(h.down, from) // an advertisement shows that the router is reachable
	h.changed = true
	lifetime, preference := uint32(a.Lifetime), a.Preference
	for _, r := range a.Routes {
		if r.Prefix.Bits() == 0 { // an option for ::/0 has the meaning of the default router fields (RFC 4191 section 3.1)
			lifetime, preference = r.Lifetime, r.Preference
			continue
		}
		h.learnRoute(route{r.Prefix, from, r.Preference, timer.Lifetime(now, r.Lifetime)}, r.Lifetime == 0)
	}
	h.learnRouter(router{from, preference, timer.Lifetime(now, lifetime)}, lifetime == 0)
	if a.MTU >= minMTU && int64(a.MTU) <= int64(h.cfg.MTU) {
		h.mtu = int(a.MTU)
	} else if a.MTU != 0 {
		h.counters.Unbelieved++
	}
	h.learnLink(a)
	for i := range a.Prefixes {
		h.learnPrefix(now, from, &a.Prefixes[i])
	}
	for _, list := range a.DNS {
		for _, s := range list.Servers {
			h.learnServer(server{s, timer.Lifetime(now, list.Lifetime)}, list.Lifetime == 0)
		}
	}
	h.forgetDown()
	h.askAgain(now)
}

// learnLink stores the advertised parameters of the link.
func (h *Host) learnLink(a *wire.RouterAdvertisement) {
	if a.HopLimit != 0 {
		h.link.HopLimit = a.HopLimit
	}
	h.link.Managed, h.link.Other = a.Managed, a.Other
	h.learnTimer(&h.link.Reachable, a.ReachableTime, time.Millisecond, maxReachable)
	h.learnTimer(&h.link.Retransmit, a.RetransTimer, minRetransmit, maxRetransmit)
}

// learnTimer stores an advertised time in milliseconds, unless it is 0 (not specified) or outside the limits.
func (h *Host) learnTimer(timer *time.Duration, said uint32, least, most time.Duration) {
	switch d := time.Duration(said) * time.Millisecond; {
	case said == 0:
	case d < least || d > most:
		h.counters.Unbelieved++
	default:
		*timer = d
	}
}

// learn adds item to a list, or replaces the element for which the function same returns
// true. If gone is set, it removes that element. It returns the list, and false if the
// list already has its maximum length, most.
func learn[T any](list []T, item T, gone bool, most int, same func(T) bool) ([]T, bool) {
	i := slices.IndexFunc(list, same)
	switch {
	case gone && i >= 0:
		return slices.Delete(list, i, i+1), true
	case gone:
		return list, true
	case i >= 0:
		list[i] = item
		return list, true
	case len(list) == most:
		return list, false
	}
	return append(list, item), true
}

func (h *Host) count(room bool) {
	if !room {
		h.counters.Overflow++
	}
}

// learnRouter adds, updates or removes a default router. With a default router, the solicitations stop.
func (h *Host) learnRouter(r router, gone bool) {
	var room bool
	h.routers, room = learn(h.routers, r, gone, maxRouters, func(o router) bool { return o.addr == r.addr })
	h.count(room)
	if len(h.routers) > 0 {
		h.found()
	}
}

// learnRoute processes a route information option. If several have the same prefix and router, the last one is kept.
func (h *Host) learnRoute(r route, gone bool) {
	if r.dst.Addr().IsLinkLocalUnicast() || r.dst.Addr().IsMulticast() {
		h.counters.Unbelieved++
		return
	}
	var room bool
	h.routes, room = learn(h.routes, r, gone, maxRoutes, func(o route) bool { return o.dst == r.dst && o.via == r.via })
	h.count(room)
}

// learnServer adds, updates or removes a name server.
func (h *Host) learnServer(s server, gone bool) {
	if !wire.IsHost6(s.addr) {
		h.counters.Unbelieved++
		return
	}
	var room bool
	h.servers, room = learn(h.servers, s, gone, maxServers, func(o server) bool { return o.addr == s.addr })
	h.count(room)
}

// learnPrefix processes a prefix information option (RFC 4861 section 6.3.4, RFC 4862 section 5.5.3).
func (h *Host) learnPrefix(now time.Duration, from netip.Addr, o *wire.PrefixInfo) {
	a := o.Prefix.Addr()
	if a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsLoopback() || a.Is4In6() || o.Prefix.Bits() == 0 || o.Preferred > o.Valid {
		h.counters.Unbelieved++
		return
	}
	p := prefix{prefix: o.Prefix}
	i := slices.IndexFunc(h.prefixes, func(q prefix) bool { return q.prefix == o.Prefix })
	if i >= 0 {
		p = h.prefixes[i]
	}
	if o.OnLink {
		p.onLink = 0
		if o.Valid != 0 {
			p.onLink = timer.Lifetime(now, o.Valid)
		}
	}
	if o.Autonomous && o.Prefix.Bits() == 64 {
		p.learnAddress(now, o)
		p.learnRouter(from, o.Valid == 0)
	}
	switch gone := p.onLink == 0 && p.valid == 0; {
	case i >= 0 && gone:
		h.prefixes = slices.Delete(h.prefixes, i, i+1)
	case i >= 0:
		h.prefixes[i] = p
	case gone:
	case len(h.prefixes) == maxPrefixes:
		h.counters.Overflow++
	default:
		h.prefixes = append(h.prefixes, p)
	}
}

// learnAddress creates an address in the prefix, or updates its lifetime. The update cannot shorten a
// remaining lifetime to less than two hours.
func (p *prefix) learnAddress(now time.Duration, o *wire.PrefixInfo) {
	valid, preferred := timer.Lifetime(now, o.Valid), timer.Lifetime(now, o.Preferred)
	switch {
	case p.valid == 0 && o.Valid == 0:
		return
	case p.valid == 0 || valid > now+twoHours || valid > p.valid:
		p.valid = valid
	case p.valid > now+twoHours:
		p.valid = now + twoHours
	}
	if p.preferred = 0; o.Preferred != 0 {
		p.preferred = min(preferred, p.valid)
	}
}

// learnRouter records that the router with the address from has advertised the prefix for
// addresses, or removes it if gone is set. Routers beyond the limit are not recorded.
func (p *prefix) learnRouter(from netip.Addr, gone bool) {
	p.routers, _ = learn(slices.Clone(p.routers), from, gone, maxRouters, func(o netip.Addr) bool { return o == from })
}

// expire removes expired data.
func (h *Host) expire(now time.Duration) {
	before := len(h.routers) + len(h.routes) + len(h.servers)
	h.routers = slices.DeleteFunc(h.routers, func(r router) bool { return now >= r.until })
	h.routes = slices.DeleteFunc(h.routes, func(r route) bool { return now >= r.until })
	h.servers = slices.DeleteFunc(h.servers, func(s server) bool { return now >= s.until })
	if len(h.routers)+len(h.routes)+len(h.servers) != before {
		h.changed = true
		h.forgetDown()
	}
	for i := range h.prefixes {
		p := &h.prefixes[i]
		for _, t := range [...]*time.Duration{&p.onLink, &p.valid, &p.preferred} {
			if *t != 0 && now >= *t {
				*t, h.changed = 0, true
			}
		}
	}
	h.prefixes = slices.DeleteFunc(h.prefixes, func(p prefix) bool { return p.onLink == 0 && p.valid == 0 })
	h.askAgain(now)
}

// askAgain restarts the solicitations if there is no default router left.
func (h *Host) askAgain(now time.Duration) {
	if len(h.routers) == 0 && h.started && !h.asking {
		h.Start(now)
	}
}

// isRouter reports whether addr is a default router or the gateway of a route.
func (h *Host) isRouter(addr netip.Addr) bool {
	return slices.ContainsFunc(h.routers, func(r router) bool { return r.addr == addr }) ||
		slices.ContainsFunc(h.routes, func(r route) bool { return r.via == addr })
}

// forgetDown removes addresses that are no longer routers from the list of routers that do not answer.
func (h *Host) forgetDown() {
	for addr := range h.down {
		if !h.isRouter(addr) {
			delete(h.down, addr)
		}
	}
}

// Reached records whether a neighbour answers. A router that does not answer is used only if no other router answers (RFC
// 4861 section 6.3.6), until it answers or sends an advertisement.
func (h *Host) Reached(addr netip.Addr, answers bool) {
	switch {
	case answers && h.down[addr]:
		delete(h.down, addr)
		h.changed = true
	case !answers && !h.down[addr] && h.isRouter(addr):
		h.down[addr] = true
		h.changed = true
	}
}

// NotRouter reports that a neighbour is no longer a router (RFC 4861 section 7.2.5).
func (h *Host) NotRouter(now time.Duration, addr netip.Addr) {
	if !h.isRouter(addr) {
		return
	}
	h.routers = slices.DeleteFunc(h.routers, func(r router) bool { return r.addr == addr })
	h.routes = slices.DeleteFunc(h.routes, func(r route) bool { return r.via == addr })
	h.changed = true
	h.forgetDown()
	h.askAgain(now)
}

// Refused reports that another host has an address from Setup. The address is removed, and no other one is
// created in its prefix (RFC 4862 section 5.4.5).
func (h *Host) Refused(addr netip.Addr) {
	for i := range h.prefixes {
		if p := &h.prefixes[i]; p.address(h.cfg.MAC).Addr() == addr {
			p.refused, h.changed = true, true
		}
	}
}
