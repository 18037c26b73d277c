package group

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// Never is the deadline of a Host that has nothing to do.
const Never = timer.Never

// Protocol constants (RFC 9776 section 8, RFC 9777 section 9; RFC 2236 section 8.10 and RFC 2710 section 7.10
// for older versions).
const (
	defaultRobustness = 2                 // number of transmissions of each change; all but one may be lost
	defaultInterval   = 125 * time.Second // time between general queries of a querier
	repeatWithin      = time.Second       // a change is reported again within this time, at random
	repeatOldWithin   = 10 * time.Second  // the same time in the older protocol versions
)

// maxSources limits the stored sources of queries about a group (RFC 9776 section 9.1). A query about more
// sources is answered for the whole group. This many fit into the smallest Config.Room.
const maxSources = 32

// Config holds the settings of a Host.
type Config struct {
	Protocol wire.GroupProtocol
	Room     int    // maximum size of a message on the link in bytes: at least 548, or 1232 for MLD
	Seed     uint64 // seed of the random delays, which prevent that hosts answer a query simultaneously
}

// Message is a message to send, with its destination.
type Message struct {
	wire.GroupMessage
	Dst netip.Addr
}

// Host reports the group memberships of an interface:
//
//	not here --- Listen: reports ---> member --- Listen to none: reports ---> not here
//	                                  ^    |
//	                a query: after a random delay, a report
//
// The host uses the newest protocol version, unless a querier of an older version is assumed to be present. Members are
// sorted by address.
type Host struct {
	cfg    Config
	random *rand.Rand

	version    uint8            // version of IGMP or MLD in use
	older      [3]time.Duration // for each older version, the time until which a querier is assumed to be present; 0: none
	robustness int              // robustness variable of the querier: number of transmissions of a change
	interval   time.Duration    // time between general queries of the querier

	members []member
	answer  time.Duration // time at which a general query is answered; Never: none is pending
	next    time.Duration // the earliest of the deadlines of the host and its members
	reports []Message     // reports that were due at the same time and that Poll has not returned yet
}

// member is a group that is received, or whose end has not been fully reported yet.
type member struct {
	group   netip.Addr
	filter  Filter          // source filter, with sorted sources
	modes   int             // how often a mode change is still to be reported; in older versions, a join or leave
	sources []changedSource // sources that were added or removed, sorted, with the number of reports still to send
	change  time.Duration   // time of the next report of a change; Never: none
	answer  time.Duration   // time at which a query about the group is answered; Never: none is pending
	asked   []netip.Addr    // sources that the query has asked about; nil: all
	last    bool            // this host was the last on the link to report the group
}

// changedSource is a source whose change is still being reported; left counts the remaining reports.
type changedSource struct {
	source netip.Addr
	left   int
}

// NewHost returns a Host for an interface that has no groups yet.
func NewHost(cfg Config) *Host {
	return &Host{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)), version: cfg.Protocol.Newest(),
		robustness: defaultRobustness, interval: defaultInterval, answer: Never, next: Never,
	}
}

// Reported reports whether memberships of a group are reported to routers. They are not reported for the all-nodes group,
// which every host receives, and for groups whose scope does not include the link (RFC 9776 section 5, RFC 9777 section 6).
func Reported(group netip.Addr) bool {
	if group.Is4() {
		return group.IsMulticast() && group != allSystems
	}
	const interfaceLocal = 1
	scope := group.As16()[1] & 0xf
	return group.IsMulticast() && scope > interfaceLocal && group != netip.IPv6LinkLocalAllNodes()
}

// Version returns the protocol version in use.
func (h *Host) Version() int { return int(h.version) }

// State returns the time until a query about the group is answered, negative if there is none, and whether
// this host was the last to report the group.
func (h *Host) State(now time.Duration, group netip.Addr) (answer time.Duration, last bool) {
	m := h.member(group)
	if m == nil {
		return -1, false
	}
	if m.answer == Never {
		return -1, m.last
	}
	return max(0, m.answer-now), m.last
}

// Listen sets the source filter of a group (RFC 9776 section 3.2). f.Sources must be sorted. A filter without
// any source ends the membership. An unchanged filter has no effect.
func (h *Host) Listen(now time.Duration, group netip.Addr, f Filter) {
	i, known := h.find(group)
	if !Reported(group) || !known && f.None() {
		return
	}
	if !known {
		h.members = slices.Insert(h.members, i, member{group: group, change: Never, answer: Never})
	}
	m := &h.members[i]
	was := m.filter
	m.filter = Filter{f.Exclude, slices.Clone(f.Sources)}
	if f.None() {
		m.answer, m.asked = Never, nil
	}
	h.changed(now, m, was)
}

// Renew reports all groups again as if they had just been joined. It is called when a valid source address
// becomes available, because routers ignore reports without one (RFC 3590 section 4).
func (h *Host) Renew(now time.Duration) {
	for i := range h.members {
		if m := &h.members[i]; m.received() {
			h.changed(now, m, Filter{})
		}
	}
}

// changed begins to report a change at once. Earlier changes that are still being reported share the same
// reports (RFC 9776 section 5.1). The older versions cannot report sources.
func (h *Host) changed(now time.Duration, m *member, was Filter) {
	switch {
	case was.equal(m.filter), h.old() && was.None() == m.filter.None():
		return
	case h.old() || was.Exclude != m.filter.Exclude:
		m.modes, m.sources = h.robustness, nil
	default:
		m.scheduleReports(minus(was.Sources, m.filter.Sources), h.robustness)
		m.scheduleReports(minus(m.filter.Sources, was.Sources), h.robustness)
	}
	m.change = now
	h.next = min(h.next, now)
}

// scheduleReports schedules the given number of reports for each source.
func (m *member) scheduleReports(sources []netip.Addr, times int) {
	for _, source := range sources {
		i, known := slices.BinarySearchFunc(m.sources, source, func(r changedSource, s netip.Addr) int { return r.source.Compare(s) })
		if !known {
			m.sources = slices.Insert(m.sources, i, changedSource{source: source})
		}
		m.sources[i].left = times
	}
}

// received reports whether the group is received from any source.
func (m *member) received() bool { return !m.filter.None() }

// hasChanges reports whether there are more changes to report.
func (m *member) hasChanges() bool { return m.modes > 0 || len(m.sources) > 0 }

// find returns the index of a group in the list of groups that the host has joined.
func (h *Host) find(group netip.Addr) (at int, found bool) {
	return slices.BinarySearchFunc(h.members, group, func(m member, g netip.Addr) int { return m.group.Compare(g) })
}

// member returns the member of a group, or nil if the group is not received.
func (h *Host) member(group netip.Addr) *member {
	if i, known := h.find(group); known && h.members[i].received() {
		return &h.members[i]
	}
	return nil
}

// Deadline returns when Advance, and then Poll, must be called, or Never.
func (h *Host) Deadline() time.Duration { return h.next }

// Advance performs the actions of the host that are due.
func (h *Host) Advance(now time.Duration) {
	if now < h.next {
		return
	}
	h.choose(now)
	if now >= h.answer {
		h.answer = Never
		for i := range h.members {
			if m := &h.members[i]; m.received() {
				m.answer, m.asked = now, nil
			}
		}
	}
	h.schedule()
}

// schedule computes the earliest of the deadlines of the host and its members.
func (h *Host) schedule() {
	h.next = h.answer
	for _, until := range h.older {
		if until != 0 {
			h.next = min(h.next, until)
		}
	}
	for i := range h.members {
		h.next = min(h.next, h.members[i].change, h.members[i].answer)
	}
	if len(h.reports) > 0 {
		h.next = 0
	}
}

// choose selects the protocol version (RFC 9776 section 7.2.1, RFC 9777 section 8.2.1). If the version changes, pending
// reports are dropped.
func (h *Host) choose(now time.Duration) {
	version := h.cfg.Protocol.Newest()
	for v := len(h.older) - 1; v > 0; v-- {
		if now >= h.older[v] {
			h.older[v] = 0
		} else {
			version = uint8(v)
		}
	}
	if version == h.version {
		return
	}
	h.version, h.answer, h.reports = version, Never, nil
	h.members = slices.DeleteFunc(h.members, func(m member) bool { return !m.received() })
	for i := range h.members {
		h.members[i].quiet()
	}
}

// quiet cancels the pending reports of the member.
func (m *member) quiet() {
	m.modes, m.sources, m.change, m.answer, m.asked = 0, nil, Never, Never, nil
}

// old reports whether the version in use has messages for single groups, and not reports with records.
func (h *Host) old() bool { return h.version < h.cfg.Protocol.Newest() }

// within returns a random time in (0, d].
func (h *Host) within(d time.Duration) time.Duration {
	return 1 + time.Duration(h.random.Int64N(int64(max(d, 1))))
}
