package group

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// Never is the deadline of a machine that waits for nothing.
const Never = timer.Never

// Values of the protocols (RFC 9776 section 8, RFC 9777 section 9; RFC 2236 section 8.10 and
// RFC 2710 section 7.10 for older versions).
const (
	defaultRobustness = 2                 // how often a change is told: one less may be lost
	defaultInterval   = 125 * time.Second // between general queries
	repeatWithin      = time.Second       // a change is told again after a random part of this
	repeatOldWithin   = 10 * time.Second  // likewise in older versions
)

// maxSources bounds the sources that are kept of queries about a group (RFC 9776 section
// 9.1). Who asks about more is told of the group as a whole. As many fit into the smallest
// Config.Room.
const maxSources = 32

// Config says what a Host is to know.
type Config struct {
	Protocol wire.GroupProtocol
	Room     int    // for a message on the link, in bytes: at least 548, or 1232 for MLD
	Seed     uint64 // of the spread in time that keeps hosts from answering all at once
}

// Message is a message with where it goes.
type Message struct {
	wire.GroupMessage
	Dst netip.Addr
}

// Host tells of the groups of an interface:
//
//	not here --- Listen: reports ---> member --- Listen to none: reports ---> not here
//	                                   ^    |
//	                     a query: after a random delay, a report
//
// The version that it speaks is the newest but while a querier of an older one is taken to be
// there. Members are kept in order of their addresses.
type Host struct {
	cfg    Config
	random *rand.Rand

	version    uint8            // that is spoken
	older      [3]time.Duration // by version: until when there is a querier of it; 0: there is none
	robustness int              // the querier's
	interval   time.Duration    // the querier's

	members []member
	answer  time.Duration // when a general query is to be answered; Never: none is
	next    time.Duration // the earliest of all times
	reports []Message     // that were due together, and are still to be handed out
}

// member is a group, while it is heard and until everybody has been told that it no longer
// is.
type member struct {
	group   netip.Addr
	filter  Filter        // its sources in order
	modes   int           // reports of the last change of the mode that are still to come; in older versions, of hearing it or not
	sources []retold      // that were added or removed; in order
	change  time.Duration // when the next report of a change is due; Never: there is none
	answer  time.Duration // when a query about it is to be answered; Never: there is none
	asked   []netip.Addr  // which sources that asked about; nil: all
	last    bool          // we have reported it, and heard nobody report it since
}

// retold is a source that is being told of, and in how many more reports.
type retold struct {
	source netip.Addr
	left   int
}

// NewHost returns the machine of an interface that is in no group.
func NewHost(cfg Config) *Host {
	return &Host{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)), version: cfg.Protocol.Newest(),
		robustness: defaultRobustness, interval: defaultInterval, answer: Never, next: Never,
	}
}

// Told reports whether a group is one that is told of: not that of all nodes, which
// everybody hears, nor one that does not reach the link (RFC 9776 section 5, RFC 9777
// section 6).
func Told(group netip.Addr) bool {
	if group.Is4() {
		return group.IsMulticast() && group != allSystems
	}
	const interfaceLocal = 1
	scope := group.As16()[1] & 0xf
	return group.IsMulticast() && scope > interfaceLocal && group != netip.IPv6LinkLocalAllNodes()
}

// Version is the version of the protocol that is spoken.
func (h *Host) Version() int { return int(h.version) }

// State tells how long it is until a query about the group is answered, negative if none is,
// and whether this host was the last to report it.
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

// Listen has a group heard by a filter, whose sources are in order: Everyone, or none of them
// to end it (RFC 9776 section 3.2). What is the case already is no change.
func (h *Host) Listen(now time.Duration, group netip.Addr, f Filter) {
	i, known := h.find(group)
	if !Told(group) || !known && f.None() {
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

// Renew tells of all groups as if they had been joined now: from an address by which others
// believe it, if there was none before (RFC 3590 section 4).
func (h *Host) Renew(now time.Duration) {
	for i := range h.members {
		if m := &h.members[i]; m.heard() {
			h.changed(now, m, Filter{})
		}
	}
}

// changed begins to tell of a change, at once. What is still being told of an earlier one is
// in the same reports (RFC 9776 section 5.1). The older versions have no word for sources.
func (h *Host) changed(now time.Duration, m *member, was Filter) {
	switch {
	case was.equal(m.filter), h.old() && was.None() == m.filter.None():
		return
	case h.old() || was.Exclude != m.filter.Exclude:
		m.modes, m.sources = h.robustness, nil
	default:
		m.retell(minus(was.Sources, m.filter.Sources), h.robustness)
		m.retell(minus(m.filter.Sources, was.Sources), h.robustness)
	}
	m.change = now
	h.next = min(h.next, now)
}

// retell has sources be in so many reports.
func (m *member) retell(sources []netip.Addr, times int) {
	for _, source := range sources {
		i, known := slices.BinarySearchFunc(m.sources, source, func(r retold, s netip.Addr) int { return r.source.Compare(s) })
		if !known {
			m.sources = slices.Insert(m.sources, i, retold{source: source})
		}
		m.sources[i].left = times
	}
}

// heard reports whether the group is.
func (m *member) heard() bool { return !m.filter.None() }

// telling reports whether there is more to say of changes.
func (m *member) telling() bool { return m.modes > 0 || len(m.sources) > 0 }

// find looks for a group among the members.
func (h *Host) find(group netip.Addr) (at int, found bool) {
	return slices.BinarySearchFunc(h.members, group, func(m member, g netip.Addr) int { return m.group.Compare(g) })
}

// member is the group if it is heard, else nil.
func (h *Host) member(group netip.Addr) *member {
	if i, known := h.find(group); known && h.members[i].heard() {
		return &h.members[i]
	}
	return nil
}

// Deadline is when Advance has to be called, and Poll after it; Never if not.
func (h *Host) Deadline() time.Duration { return h.next }

// Advance does what is due.
func (h *Host) Advance(now time.Duration) {
	if now < h.next {
		return
	}
	h.choose(now)
	if now >= h.answer {
		h.answer = Never
		for i := range h.members {
			if m := &h.members[i]; m.heard() {
				m.answer, m.asked = now, nil
			}
		}
	}
	h.schedule()
}

// schedule finds the earliest of all times.
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

// choose picks the version to speak (RFC 9776 section 7.2.1, RFC 9777 section 8.2.1). When it
// is another than before, what was to be sent is not.
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
	h.members = slices.DeleteFunc(h.members, func(m member) bool { return !m.heard() })
	for i := range h.members {
		h.members[i].quiet()
	}
}

// quiet cancels what the member was to send.
func (m *member) quiet() {
	m.modes, m.sources, m.change, m.answer, m.asked = 0, nil, Never, Never, nil
}

// old reports whether a version is spoken that has no records.
func (h *Host) old() bool { return h.version < h.cfg.Protocol.Newest() }

// within is a random time in (0, d].
func (h *Host) within(d time.Duration) time.Duration {
	return 1 + time.Duration(h.random.Int64N(int64(max(d, 1))))
}
