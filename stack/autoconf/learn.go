package autoconf

import (
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// What a host learns from an advertisement, and how it forgets.

// minMTU is the least that a link of IPv6 carries (RFC 8200 section 5).
const minMTU = 1280

// twoHours is how much of the lifetime of an address an advertisement cannot take, since
// nobody says who sent it (RFC 4862 section 5.5.3 (e)).
const twoHours = 2 * time.Hour

// Bounds on what is believed of the timers of a link: RFC 4861 section 6.2.1 has the one for
// routers; the other is ours, so that an address is tried and a neighbour given up in time, and
// nobody is asked for in a flood.
const (
	maxReachable  = time.Hour
	minRetransmit = 10 * time.Millisecond
	maxRetransmit = 10 * time.Second
)

// Receive takes in an advertisement, which was sent from a link-local address with a hop
// limit of 255 and a right checksum (RFC 4861 section 6.3.4).
func (h *Host) Receive(now time.Duration, from netip.Addr, a *wire.RouterAdvertisement) {
	h.counters.Advertisements++
	h.expire(now)
	delete(h.down, from) // it is there
	h.changed = true
	lifetime, preference := uint32(a.Lifetime), a.Preference
	for _, r := range a.Routes {
		if r.Prefix.Bits() == 0 { // the same, said in another way: RFC 4191 section 3.1
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

// learnLink takes over what is said of the link itself.
func (h *Host) learnLink(a *wire.RouterAdvertisement) {
	if a.HopLimit != 0 {
		h.link.HopLimit = a.HopLimit
	}
	h.link.Managed, h.link.Other = a.Managed, a.Other
	h.learnTimer(&h.link.Reachable, a.ReachableTime, time.Millisecond, maxReachable)
	h.learnTimer(&h.link.Retransmit, a.RetransTimer, minRetransmit, maxRetransmit)
}

// learnTimer takes over a time in milliseconds, if it is said and within bounds.
func (h *Host) learnTimer(timer *time.Duration, said uint32, least, most time.Duration) {
	switch d := time.Duration(said) * time.Millisecond; {
	case said == 0:
	case d < least || d > most:
		h.counters.Unbelieved++
	default:
		*timer = d
	}
}

// learn enters what was said of an item into a list, or takes it out; same finds it
// there. It returns the list, and false if there was no room.
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

func (h *Host) learnRouter(r router, gone bool) {
	var room bool
	h.routers, room = learn(h.routers, r, gone, maxRouters, func(o router) bool { return o.addr == r.addr })
	h.count(room)
	if len(h.routers) > 0 {
		h.found()
	}
}

// learnRoute takes in a route information option. Of several about one prefix from one
// router the last counts.
func (h *Host) learnRoute(r route, gone bool) {
	if r.dst.Addr().IsLinkLocalUnicast() || r.dst.Addr().IsMulticast() {
		h.counters.Unbelieved++
		return
	}
	var room bool
	h.routes, room = learn(h.routes, r, gone, maxRoutes, func(o route) bool { return o.dst == r.dst && o.via == r.via })
	h.count(room)
}

func (h *Host) learnServer(s server, gone bool) {
	if !wire.IsHost6(s.addr) {
		h.counters.Unbelieved++
		return
	}
	var room bool
	h.servers, room = learn(h.servers, s, gone, maxServers, func(o server) bool { return o.addr == s.addr })
	h.count(room)
}

// learnPrefix takes in a prefix information option (RFC 4861 section 6.3.4, RFC 4862
// section 5.5.3).
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

// learnAddress makes an address of the prefix, or lets the one there is live for as long
// as is said: but for no less than two hours if it had as much.
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

// learnRouter takes in who has advertised an address of the prefix. Those for whom there is no
// room are as routers that have not.
func (p *prefix) learnRouter(from netip.Addr, gone bool) {
	p.routers, _ = learn(slices.Clone(p.routers), from, gone, maxRouters, func(o netip.Addr) bool { return o == from })
}

// expire forgets what has ended.
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

// askAgain asks when there is no default router any more.
func (h *Host) askAgain(now time.Duration) {
	if len(h.routers) == 0 && h.started && !h.asking {
		h.Start(now)
	}
}

// isRouter reports whether something leads by way of addr.
func (h *Host) isRouter(addr netip.Addr) bool {
	return slices.ContainsFunc(h.routers, func(r router) bool { return r.addr == addr }) ||
		slices.ContainsFunc(h.routes, func(r route) bool { return r.via == addr })
}

// forgetDown forgets about those that are routers no more.
func (h *Host) forgetDown() {
	for addr := range h.down {
		if !h.isRouter(addr) {
			delete(h.down, addr)
		}
	}
}

// Reached says whether a neighbour answers. A router that does not is used only if all
// others do not either (RFC 4861 section 6.3.6), until it is heard again.
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

// NotRouter is called when a neighbour says that it is no router (RFC 4861 section 7.2.5).
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

// Refused is called when another host has an address that Setup has named: it is not
// used, and no other is made of its prefix (RFC 4862 section 5.4.5).
func (h *Host) Refused(addr netip.Addr) {
	for i := range h.prefixes {
		if p := &h.prefixes[i]; p.address(h.cfg.MAC).Addr() == addr {
			p.refused, h.changed = true, true
		}
	}
}
