package ip

import (
	"maps"
	"net/netip"
	"time"

	"loam/stack/timer"
)

// Redirects (RFC 1122 section 3.2.2.2, RFC 4861 section 8). The table keeps better first hops reported by the
// routers of a link, for five minutes each, like Linux's ip_rt_gc_timeout. Then packets go to the router of
// the route table again, which repeats the redirect if it still applies.
//
// The owner must first decide whether to trust a message: it must come from the current first hop for the
// destination and name a neighbour. The table is bounded. At the bound, new redirects are rejected until an
// entry expires, so a flood of redirects has no effect.

const (
	redirectLifetime = 5 * time.Minute
	maxRedirects     = 256 // maximum number of destinations of a link
)

// Detour replaces the first hop that the route table returns. It is valid as long as the route table returns From.
type Detour struct {
	From netip.Addr // gateway according to the route table
	Via  netip.Addr // neighbour to use instead: a router, or the destination itself
}

// Redirects is the table of one link. The zero value is empty.
type Redirects struct {
	table   map[netip.Addr]redirect // redirects by destination
	changed bool                    // the result of Detours differs from the last one
}

type redirect struct {
	Detour
	expires time.Duration
}

// Learn records that the current first hop for dst (from) has named another router (via)
// as the better first hop. It returns false if the table is full.
func (r *Redirects) Learn(now time.Duration, dst, from, via netip.Addr) bool {
	r.Expire(now)
	e, known := r.table[dst]
	switch {
	case known && e.Via == from && e.From == via: // the first hop of the redirect points back to the router of the route table
		delete(r.table, dst)
		r.changed = true
		return true
	case !known && len(r.table) >= maxRedirects:
		return false
	case known && e.Via == from:
		from = e.From
	}
	if r.table == nil {
		r.table = make(map[netip.Addr]redirect)
	}
	d := Detour{From: from, Via: via}
	r.changed = r.changed || e.Detour != d
	r.table[dst] = redirect{d, now + redirectLifetime}
	return true
}

// Failed removes the redirects to a neighbour that does not answer, and reports whether there were any.
func (r *Redirects) Failed(via netip.Addr) bool {
	return r.drop(func(_ netip.Addr, e redirect) bool { return e.Via == via })
}

// NotRouter removes the redirects through a neighbour that is no longer a router (RFC 4861 section 7.2.5).
// Redirects whose destination is the neighbour itself remain.
func (r *Redirects) NotRouter(via netip.Addr) {
	r.drop(func(dst netip.Addr, e redirect) bool { return e.Via == via && dst != via })
}

// Expire removes expired entries.
func (r *Redirects) Expire(now time.Duration) {
	r.drop(func(_ netip.Addr, e redirect) bool { return now >= e.expires })
}

func (r *Redirects) drop(which func(dst netip.Addr, e redirect) bool) bool {
	before := len(r.table)
	maps.DeleteFunc(r.table, which)
	dropped := len(r.table) != before
	r.changed = r.changed || dropped
	return dropped
}

// Deadline returns when Expire must be called next, or timer.Never.
func (r *Redirects) Deadline() time.Duration {
	d := time.Duration(timer.Never)
	for _, e := range r.table {
		d = min(d, e.expires)
	}
	return d
}

// Detours returns all redirects by destination if they have changed since the last call. The map belongs to
// the caller.
func (r *Redirects) Detours() (map[netip.Addr]Detour, bool) {
	if !r.changed {
		return nil, false
	}
	r.changed = false
	all := make(map[netip.Addr]Detour, len(r.table))
	for dst, e := range r.table {
		all[dst] = e.Detour
	}
	return all, true
}
