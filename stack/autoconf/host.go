package autoconf

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// Never is the deadline of a Host that has nothing to do, and the end of an unlimited lifetime.
const Never = timer.Never

// Intervals between router solicitations (RFC 4861 section 10, RFC 7559 section 2). Without an answer, they
// grow up to maxInterval.
const (
	firstInterval = 4 * time.Second
	maxInterval   = time.Hour
	spread        = 10 // an interval is varied randomly by up to a tenth of itself
)

// Maximum numbers of the things that a host learns from router advertisements.
const (
	maxRouters  = 16
	maxRoutes   = 32
	maxPrefixes = 16
	maxServers  = 8
)

// Config holds the settings of a Host.
type Config struct {
	MAC  wire.MAC // MAC address of the interface
	MTU  int      // MTU of the interface in bytes
	Seed uint64   // seed of the random delays that keep hosts from acting simultaneously
}

// Counters count events since the creation of the Host.
type Counters struct {
	Advertisements uint64 // advertisements received
	Unbelieved     uint64 // parts of advertisements that were ignored as invalid
	Overflow       uint64 // parts of advertisements that were ignored because a limit was reached
}

// Host learns the configuration of an interface from routers:
//
//	Start --> asking -- advertisement of a default router --> listening
//	             ^                                                |
//	             +----------- the last of these is gone ----------+
//
// After each call, the owner calls Poll for a solicitation to send, and Setup for a changed configuration.
type Host struct {
	cfg    Config
	random *rand.Rand

	started  bool
	asking   bool
	due      bool          // a solicitation must be sent
	interval time.Duration // current interval between solicitations
	next     time.Duration // time of the next solicitation

	routers  []router
	routes   []route
	prefixes []prefix
	servers  []server
	down     map[netip.Addr]bool // routers that do not answer (neighbour unreachability)
	mtu      int                 // advertised MTU of the link; 0: none
	link     Link                // other advertised parameters of the link

	changed  bool  // the result of Setup may differ from reported
	reported Setup // last result of Setup
	counters Counters
}

// router is a default router.
type router struct {
	addr       netip.Addr
	preference wire.Preference
	until      time.Duration
}

// route is a network that is reachable through a router.
type route struct {
	dst        netip.Prefix
	via        netip.Addr
	preference wire.Preference
	until      time.Duration
}

// prefix is a prefix of the link. It exists while one of its times lies in the future.
type prefix struct {
	prefix    netip.Prefix
	onLink    time.Duration // time until which the prefix is on-link; 0: it is not on-link
	valid     time.Duration // time until which our address in the prefix is valid; 0: we have no address in it
	preferred time.Duration // time until which our address is preferred
	refused   bool          // another host uses our address, so we do not create it again
	routers   []netip.Addr  // routers that advertised the prefix for address configuration
}

// server is a name server.
type server struct {
	addr  netip.Addr
	until time.Duration
}

// NewHost returns a Host for an interface. It has learned nothing, and sends nothing before Start.
func NewHost(cfg Config) *Host {
	return &Host{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)), next: Never,
		down: make(map[netip.Addr]bool),
	}
}

// Counters returns the counters.
func (h *Host) Counters() Counters { return h.counters }

// Start begins to send solicitations at once. The interface must have a link-local address, whose setup has
// already taken the required delay (RFC 4861 section 6.3.7).
func (h *Host) Start(now time.Duration) {
	h.started, h.asking, h.due, h.interval, h.next = true, true, true, 0, Never
}

// Deadline returns when Advance must be called, or Never.
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

// next returns the time at which the first of the prefix's lifetimes ends.
func (p *prefix) next() time.Duration {
	d := time.Duration(Never)
	for _, t := range [...]time.Duration{p.onLink, p.valid, p.preferred} {
		if t != 0 {
			d = min(d, t)
		}
	}
	return d
}

// Advance performs the actions that are due.
func (h *Host) Advance(now time.Duration) {
	if now >= h.next {
		h.due, h.next = true, Never
	}
	h.expire(now)
}

// Poll returns a router solicitation to send to all routers, which counts as sent now. It returns false if none is due.
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

// found stops the router solicitations, because a router has answered.
func (h *Host) found() { h.asking, h.due, h.next = false, false, Never }
