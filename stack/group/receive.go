package group

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// Receive processes a message of IGMP or MLD that the caller has validated.
func (h *Host) Receive(now time.Duration, m *wire.GroupMessage) {
	switch m.Kind {
	case wire.GroupQuery:
		h.queried(now, m)
	case wire.GroupMember:
		h.suppress(m.Group)
	}
	h.schedule()
}

// suppress processes the report of another host. In the older versions, one report suppresses the reports of all other
// hosts (RFC 2236 section 3, RFC 2710 section 4).
func (h *Host) suppress(group netip.Addr) {
	if m := h.member(group); m != nil && h.old() {
		m.quiet()
		m.last = false
	}
}

// queried processes a query (RFC 9776 section 5.2, RFC 9777 section 6.2).
func (h *Host) queried(now time.Duration, q *wire.GroupMessage) {
	general := q.Group.IsUnspecified()
	switch {
	case q.Version == h.cfg.Protocol.Newest():
		h.robustness, h.interval = defaultRobustness, defaultInterval
		if q.Robustness != 0 {
			h.robustness = int(q.Robustness)
		}
		if q.Interval != 0 {
			h.interval = q.Interval
		}
	case general: // only general queries determine the version in use (RFC 9776 section 7.2.1)
		h.older[q.Version] = now + h.olderPresent(q)
	}
	h.choose(now)
	switch {
	case h.old():
		h.askedOld(now, q)
	case general:
		h.askedAll(now, q)
	default:
		h.asked(now, q)
	}
}

// olderPresent returns how long an older querier is assumed present after its query (RFC 9776 section 8.12,
// RFC 9777 section 9.12).
func (h *Host) olderPresent(q *wire.GroupMessage) time.Duration {
	if q.Protocol == wire.IGMP {
		return defaultRobustness*defaultInterval + 10*q.MaxDelay
	}
	return time.Duration(h.robustness)*h.interval + q.MaxDelay
}

// askedAll schedules the answer to a general query. If an answer is already scheduled earlier, it stays (rules 1 and 2
// of RFC 9776 section 5.2).
func (h *Host) askedAll(now time.Duration, q *wire.GroupMessage) {
	if slices.ContainsFunc(h.members, func(m member) bool { return m.received() }) {
		h.answer = min(h.answer, now+h.within(q.MaxDelay))
	}
}

// asked schedules the answer to a query about a group or about sources of it (rules 1, 3, 4 and 5 of RFC 9776 section
// 5.2).
func (h *Host) asked(now time.Duration, q *wire.GroupMessage) {
	m := h.member(q.Group)
	if m == nil {
		return
	}
	at := now + h.within(q.MaxDelay)
	if h.answer <= at {
		return
	}
	switch {
	case m.answer == Never:
		m.asked = union(nil, q.Sources)
	case m.asked == nil || q.Sources == nil:
		m.asked = nil
	default:
		m.asked = union(m.asked, q.Sources)
	}
	m.answer = min(m.answer, at)
}

// union returns the elements of both lists. If there are more than maxSources, it returns nil, which means all sources.
func union(a, b []netip.Addr) []netip.Addr {
	for _, source := range b {
		if !slices.Contains(a, source) {
			a = append(a, source)
		}
		if len(a) > maxSources {
			return nil
		}
	}
	return a
}

// askedOld schedules the answers of the older versions: one for each group, at separate random times within
// the querier's limit (RFC 2236 section 3, RFC 2710 section 4).
func (h *Host) askedOld(now time.Duration, q *wire.GroupMessage) {
	for i := range h.members {
		m := &h.members[i]
		if m.received() && (q.Group.IsUnspecified() || m.group == q.Group) && m.answer > now+q.MaxDelay {
			m.answer = now + h.within(q.MaxDelay)
		}
	}
}
