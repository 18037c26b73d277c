package ip

import (
	"maps"
	"net/netip"
	"time"

	"loam/stack/timer"
)

// Redirects (RFC 1122 section 3.2.2.2, RFC 4861 section 8): what the routers of a link have
// said of better first hops to certain destinations, for five minutes each, as Linux's
// ip_rt_gc_timeout has it; then the router that the routes name is asked again, in that it is
// sent a packet, and says so anew.
//
// Whether a message is to be believed is for the owner to find out first: it has to come from
// the first hop that packets to the destination are given to, and to name a neighbour. Here
// there is a bound on how much is believed at once; what is beyond it waits until something
// ends, so that who floods a host with redirects has it do nothing.

const (
	redirectLifetime = 5 * time.Minute
	maxRedirects     = 256 // destinations of a link
)

// Detour is another first hop than the one that the routes name. It is good for as long as
// they name that one.
type Detour struct {
	From netip.Addr // the gateway of the routes
	Via  netip.Addr // the neighbour that packets are given to instead: a router, or the destination
}

// Redirects is what is known on one link. The zero value is empty.
type Redirects struct {
	table   map[netip.Addr]redirect // by destination
	changed bool                    // Detours may say something else than before
}

type redirect struct {
	Detour
	expires time.Duration
}

// Learn takes in that from, to which packets to dst are given now, has named via as the
// better first hop. It reports whether there was room.
func (r *Redirects) Learn(now time.Duration, dst, from, via netip.Addr) bool {
	r.Expire(now)
	e, known := r.table[dst]
	switch {
	case known && e.Via == from && e.From == via: // back to where the routes lead
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

// Failed forgets what leads by way of a neighbour that does not answer, and reports whether
// anything did.
func (r *Redirects) Failed(via netip.Addr) bool {
	return r.drop(func(_ netip.Addr, e redirect) bool { return e.Via == via })
}

// NotRouter forgets what leads by way of a neighbour to others: it has said that it is no
// router (RFC 4861 section 7.2.5).
func (r *Redirects) NotRouter(via netip.Addr) {
	r.drop(func(dst netip.Addr, e redirect) bool { return e.Via == via && dst != via })
}

// Expire forgets what is older than its time.
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

// Deadline is when Expire has to be called, timer.Never if not.
func (r *Redirects) Deadline() time.Duration {
	d := time.Duration(timer.Never)
	for _, e := range r.table {
		d = min(d, e.expires)
	}
	return d
}

// Detours returns all by destination, in a map that is the caller's, if they have changed
// since they were last asked for.
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
