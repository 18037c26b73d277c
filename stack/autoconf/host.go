package autoconf

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// Never is the deadline of a machine that waits for nothing, and the end of what lasts
// for ever.
const Never = timer.Never

// When to ask for routers (RFC 4861 section 10, RFC 7559 section 2): at first soon, and
// for as long as there is no answer ever more rarely.
const (
	firstInterval = 4 * time.Second
	maxInterval   = time.Hour
	spread        = 10 // an interval is longer or shorter by up to a tenth
)

// Bounds on what is believed at once.
const (
	maxRouters  = 16
	maxRoutes   = 32
	maxPrefixes = 16
	maxServers  = 8
)

// Config says what a Host is to know.
type Config struct {
	MAC  wire.MAC // of the interface
	MTU  int      // of the interface
	Seed uint64   // of the spread in time that keeps hosts from acting all at once
}

// Counters count, since the beginning.
type Counters struct {
	Advertisements uint64 // received
	Unbelieved     uint64 // parts of them that make no sense
	Overflow       uint64 // parts of them that there was no room for
}

// Host is an interface that learns from routers:
//
//	Start --> asking -- advertisement of a default router --> listening
//	             ^                                                |
//	             +----------- the last of these is gone ----------+
//
// After each call Poll says whether to ask, and Setup what the interface is to be.
type Host struct {
	cfg    Config
	random *rand.Rand

	started  bool
	asking   bool
	due      bool          // a solicitation is to be sent
	interval time.Duration // between solicitations
	next     time.Duration // when the next one is due

	routers  []router
	routes   []route
	prefixes []prefix
	servers  []server
	down     map[netip.Addr]bool // of routers, those that do not answer
	mtu      int                 // of the link; 0: not said
	link     Link                // what else was said of the link

	changed  bool  // Setup may say something else than before
	told     Setup // what it said last
	counters Counters
}

// router is a default router.
type router struct {
	addr       netip.Addr
	preference wire.Preference
	until      time.Duration
}

// route is a network that a router leads to.
type route struct {
	dst        netip.Prefix
	via        netip.Addr
	preference wire.Preference
	until      time.Duration
}

// prefix is a prefix of the link. It is there while one of its times is to come.
type prefix struct {
	prefix    netip.Prefix
	onLink    time.Duration // until then its addresses are on the link
	valid     time.Duration // until then we have an address in it
	preferred time.Duration // until then that is preferred
	refused   bool          // another host has the address
	routers   []netip.Addr  // that have said so of its address
}

// server is a name server.
type server struct {
	addr  netip.Addr
	until time.Duration
}

// NewHost returns the machine of an interface that knows nothing, and does not ask.
func NewHost(cfg Config) *Host {
	return &Host{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)), next: Never,
		down: make(map[netip.Addr]bool),
	}
}

// Counters returns the counters.
func (h *Host) Counters() Counters { return h.counters }

// Start begins to ask, at once: the interface has a link-local address to ask from, and
// has waited long enough until it had (RFC 4861 section 6.3.7).
func (h *Host) Start(now time.Duration) {
	h.started, h.asking, h.due, h.interval, h.next = true, true, true, 0, Never
}

// Deadline is when Advance has to be called, Never if not.
func (h *Host) Deadline() time.Duration {
	d := h.next
	for i := range h.routers {
		d = min(d, h.routers[i].until)
	}
	for i := range h.routes {
		d = min(d, h.routes[i].until)
	}
	for i := range h.prefixes {
		d = min(d, h.prefixes[i].next())
	}
	for i := range h.servers {
		d = min(d, h.servers[i].until)
	}
	return d
}

// next is when something about the prefix ends.
func (p *prefix) next() time.Duration {
	d := time.Duration(Never)
	for _, t := range [...]time.Duration{p.onLink, p.valid, p.preferred} {
		if t != 0 {
			d = min(d, t)
		}
	}
	return d
}

// Advance does what is due.
func (h *Host) Advance(now time.Duration) {
	if now >= h.next {
		h.due, h.next = true, Never
	}
	h.expire(now)
}

// Poll reports whether a solicitation is to be sent, to all routers. It counts as sent
// then.
func (h *Host) Poll(now time.Duration) (wire.RouterSolicitation, bool) {
	if !h.due {
		return wire.RouterSolicitation{}, false
	}
	h.due = false
	h.interval = min(max(2*h.interval, firstInterval), maxInterval)
	tenth := int64(h.interval / spread)
	h.next = now + h.interval + time.Duration(h.random.Int64N(2*tenth)-tenth)
	return wire.RouterSolicitation{LinkAddr: h.cfg.MAC}, true
}

// found ends asking.
func (h *Host) found() { h.asking, h.due, h.next = false, false, Never }
