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
//	not here --- Join: reports ---> member --- Leave: reports ---> not here
//	                                 ^    |
//	                   a query: after a random delay, a report
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
}

// member is a group, while it is heard and until everybody has been told that it no longer
// is.
type member struct {
	group   netip.Addr
	joined  bool
	changes int           // reports of the last change that are still to come
	change  time.Duration // when the next of these is due; Never: there is none
	answer  time.Duration // when a query about it is to be answered; Never: there is none
	sources []netip.Addr  // what that asked about; nil: all
	last    bool          // we have reported it, and heard nobody report it since
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

// Join begins to hear a group. Joining twice changes nothing.
func (h *Host) Join(now time.Duration, group netip.Addr) {
	i, known := h.find(group)
	switch {
	case !Told(group) || known && h.members[i].joined:
		return
	case !known:
		h.members = slices.Insert(h.members, i, member{group: group, change: Never, answer: Never})
	}
	h.members[i].joined = true
	h.changed(now, &h.members[i])
}

// Leave ends hearing a group.
func (h *Host) Leave(now time.Duration, group netip.Addr) {
	m := h.member(group)
	if m == nil {
		return
	}
	m.joined, m.answer, m.sources = false, Never, nil
	h.changed(now, m)
}

// Renew tells of all groups as if they had been joined now: from an address by which others
// believe it, if there was none before (RFC 3590 section 4).
func (h *Host) Renew(now time.Duration) {
	for i := range h.members {
		if h.members[i].joined {
			h.changed(now, &h.members[i])
		}
	}
}

// changed begins to tell of a change, at once, and ends telling of an earlier one (RFC 9776
// section 5.1).
func (h *Host) changed(now time.Duration, m *member) {
	m.changes, m.change = h.robustness, now
	h.next = min(h.next, now)
}

// find looks for a group among the members.
func (h *Host) find(group netip.Addr) (at int, found bool) {
	return slices.BinarySearchFunc(h.members, group, func(m member, g netip.Addr) int { return m.group.Compare(g) })
}

// member is the group if it is heard, else nil.
func (h *Host) member(group netip.Addr) *member {
	if i, known := h.find(group); known && h.members[i].joined {
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
			if m := &h.members[i]; m.joined {
				m.answer, m.sources = now, nil
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
	h.version, h.answer = version, Never
	h.members = slices.DeleteFunc(h.members, func(m member) bool { return !m.joined })
	for i := range h.members {
		h.members[i].quiet()
	}
}

// quiet cancels what the member was to send.
func (m *member) quiet() { m.changes, m.change, m.answer, m.sources = 0, Never, Never, nil }

// old reports whether a version is spoken that has no records.
func (h *Host) old() bool { return h.version < h.cfg.Protocol.Newest() }

// within is a random time in (0, d].
func (h *Host) within(d time.Duration) time.Duration {
	return 1 + time.Duration(h.random.Int64N(int64(max(d, 1))))
}
