package group

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// Destinations of messages. A report of an older version is sent to its own group.
var (
	allSystems = netip.AddrFrom4([4]byte{224, 0, 0, 1})
	allRouters = [...]netip.Addr{wire.IGMP: netip.AddrFrom4([4]byte{224, 0, 0, 2}), wire.MLD: netip.IPv6LinkLocalAllRouters()}
	reporting  = [...]netip.Addr{ // destination of reports in the newest versions (RFC 9776 section 4.2.15, RFC 9777 section 5.2.15)
		wire.IGMP: netip.AddrFrom4([4]byte{224, 0, 0, 22}),
		wire.MLD:  netip.AddrFrom16([16]byte{0xff, 0x02, 15: 0x16}),
	}
)

// Poll returns a message that is due, which counts as sent now. It returns false if none is due.
func (h *Host) Poll(now time.Duration) (Message, bool) {
	if now < h.next {
		return Message{}, false
	}
	m, ok := h.poll(now)
	h.schedule()
	return m, ok
}

// poll returns the next message that is due, for Poll.
func (h *Host) poll(now time.Duration) (Message, bool) {
	if h.old() {
		return h.pollOld(now)
	}
	if len(h.reports) == 0 {
		h.report(now)
	}
	if len(h.reports) == 0 {
		return Message{}, false
	}
	m := h.reports[0]
	h.reports = h.reports[1:]
	return m, true
}

// report builds reports of everything that is due, changes first; they count as sent now. The changes that are reported now
// will be repeated together.
func (h *Host) report(now time.Duration) {
	var changes, answers []wire.GroupRecord
	together := now + h.within(repeatWithin)
	for i := range h.members {
		m := &h.members[i]
		if now >= m.change {
			changes = append(changes, m.changeRecords()...)
			m.repeat(together)
		}
		if now >= m.answer {
			answers = append(answers, m.answerRecords()...)
			m.answer, m.asked = Never, nil
		}
	}
	h.members = slices.DeleteFunc(h.members, func(m member) bool { return !m.received() && !m.hasChanges() })
	h.pack(changes)
	h.pack(answers)
}

// changeRecords returns the records of a change (RFC 9776 section 5.1): either the new mode with all sources,
// or the added and removed sources.
func (m *member) changeRecords() []wire.GroupRecord {
	m.last = m.received()
	if m.modes > 0 {
		r := wire.GroupRecord{Type: wire.ChangeToInclude, Group: m.group, Sources: m.filter.Sources}
		if m.filter.Exclude {
			r.Type = wire.ChangeToExclude
		}
		return []wire.GroupRecord{r}
	}
	allow, block := wire.GroupRecord{Type: wire.AllowNewSources, Group: m.group}, wire.GroupRecord{Type: wire.BlockOldSources, Group: m.group}
	for _, r := range m.sources {
		if m.filter.Accepts(r.source) {
			allow.Sources = append(allow.Sources, r.source)
		} else {
			block.Sources = append(block.Sources, r.source)
		}
	}
	return slices.DeleteFunc([]wire.GroupRecord{allow, block}, func(r wire.GroupRecord) bool { return r.Sources == nil })
}

// answerRecords returns the records that answer a query. If the query named sources, only those that are
// received are included (RFC 9776 section 5.2, table 5).
func (m *member) answerRecords() []wire.GroupRecord {
	r := wire.GroupRecord{Type: wire.ModeIsInclude, Group: m.group, Sources: m.filter.Sources}
	switch {
	case m.asked != nil:
		r.Sources = slices.DeleteFunc(m.asked, func(source netip.Addr) bool { return !m.filter.Accepts(source) })
		if len(r.Sources) == 0 {
			return nil
		}
	case m.filter.Exclude:
		r.Type = wire.ModeIsExclude
	}
	m.last = true
	return []wire.GroupRecord{r}
}

// repeat records that a change has been reported. The next report of it is due at the given time.
func (m *member) repeat(at time.Duration) {
	m.modes = max(0, m.modes-1)
	for i := range m.sources {
		m.sources[i].left--
	}
	m.sources = slices.DeleteFunc(m.sources, func(r changedSource) bool { return r.left == 0 })
	m.change = at
	if !m.hasChanges() {
		m.change = Never
	}
}

// pack distributes records over as few reports as possible. A record that does not fit is split if the result
// is equivalent. Otherwise it is truncated to the sources that fit (RFC 9776 section 4.2.17, RFC 9777 section
// 5.2.16).
func (h *Host) pack(records []wire.GroupRecord) {
	report := h.newReport()
	for _, r := range records {
		for whole := false; !whole; {
			if len(report.Records) > 0 && report.Len()+r.Len() > h.cfg.Room {
				h.reports = append(h.reports, report)
				report = h.newReport()
			}
			var part wire.GroupRecord
			part, whole = fit(r, h.cfg.Room-report.Len())
			r.Sources = r.Sources[len(part.Sources):]
			report.Records = append(report.Records, part)
		}
	}
	if len(report.Records) > 0 {
		h.reports = append(h.reports, report)
	}
}

// fit returns the part of a record that fits into room bytes, and whether the rest may be omitted or is
// empty.
func fit(r wire.GroupRecord, room int) (part wire.GroupRecord, whole bool) {
	if r.Len() <= room {
		return r, true
	}
	none := wire.GroupRecord{Group: r.Group}
	r.Sources = r.Sources[:(room-none.Len())/(r.Group.BitLen()/8)]
	return r, r.Type == wire.ModeIsExclude || r.Type == wire.ChangeToExclude
}

func (h *Host) newReport() Message {
	return Message{
		GroupMessage: wire.GroupMessage{Protocol: h.cfg.Protocol, Kind: wire.GroupReport, Version: h.version},
		Dst:          reporting[h.cfg.Protocol],
	}
}

// pollOld returns the next message that is due in the older versions. Each of their messages concerns one group.
func (h *Host) pollOld(now time.Duration) (Message, bool) {
	for i := range h.members {
		m := &h.members[i]
		if now < m.change && now < m.answer {
			continue
		}
		if !m.received() {
			return h.leave(now, i)
		}
		if now >= m.change {
			m.repeat(now + h.within(repeatOldWithin))
		}
		m.answer, m.last = Never, true
		return h.about(wire.GroupMember, m.group, m.group), true
	}
	return Message{}, false
}

// leave removes a group that the host has left. It returns a leave message if this host was the last to report the group
// (RFC 2236 section 3, RFC 2710 section 4). IGMPv1 has no leave message; then it returns the next message about another
// group.
func (h *Host) leave(now time.Duration, at int) (Message, bool) {
	m := h.members[at]
	h.members = slices.Delete(h.members, at, at+1)
	if !m.last || h.cfg.Protocol == wire.IGMP && h.version == 1 {
		return h.pollOld(now)
	}
	return h.about(wire.GroupLeave, m.group, allRouters[h.cfg.Protocol]), true
}

// about returns a message of an older version about a group.
func (h *Host) about(kind wire.GroupKind, group, dst netip.Addr) Message {
	return Message{wire.GroupMessage{Protocol: h.cfg.Protocol, Kind: kind, Version: h.version, Group: group}, dst}
}
