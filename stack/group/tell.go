package group

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// Where messages go. A report of an older version goes to the group that it is about.
var (
	allSystems = netip.AddrFrom4([4]byte{224, 0, 0, 1})
	allRouters = [...]netip.Addr{wire.IGMP: netip.AddrFrom4([4]byte{224, 0, 0, 2}), wire.MLD: netip.IPv6LinkLocalAllRouters()}
	reporting  = [...]netip.Addr{ // of the newest versions (RFC 9776 section 4.2.15, RFC 9777 section 5.2.15)
		wire.IGMP: netip.AddrFrom4([4]byte{224, 0, 0, 22}),
		wire.MLD:  netip.AddrFrom16([16]byte{0xff, 0x02, 15: 0x16}),
	}
)

// Poll hands out a message that is due. It counts as sent then.
func (h *Host) Poll(now time.Duration) (Message, bool) {
	if now < h.next {
		return Message{}, false
	}
	m, ok := h.poll(now)
	h.schedule()
	return m, ok
}

func (h *Host) poll(now time.Duration) (Message, bool) {
	if h.old() {
		return h.pollOld(now)
	}
	if m, ok := h.report(now, h.changeRecord); ok {
		return m, true
	}
	return h.report(now, h.answerRecord)
}

// report is a report with as many records as are due and fit into it. record makes one of a
// member, if it is due, and counts it as sent; together is when those are to be repeated that
// are told of for the first time now.
func (h *Host) report(now time.Duration, record func(now, together time.Duration, m *member) (wire.GroupRecord, bool)) (Message, bool) {
	report := Message{
		GroupMessage: wire.GroupMessage{Protocol: h.cfg.Protocol, Kind: wire.GroupReport, Version: h.version},
		Dst:          reporting[h.cfg.Protocol],
	}
	together := now + h.within(repeatWithin)
	for i := range h.members {
		m := &h.members[i]
		if now < m.change && now < m.answer {
			continue
		}
		most := wire.GroupRecord{Group: m.group, Sources: m.sources}
		if report.Len()+most.Len() > h.cfg.Room {
			break
		}
		if r, due := record(now, together, m); due {
			report.Records = append(report.Records, r)
		}
	}
	h.members = slices.DeleteFunc(h.members, func(m member) bool { return !m.joined && m.changes == 0 })
	return report, len(report.Records) > 0
}

// changeRecord tells of a group that was joined or left (RFC 9776 section 5.1).
func (h *Host) changeRecord(now, together time.Duration, m *member) (wire.GroupRecord, bool) {
	if now < m.change {
		return wire.GroupRecord{}, false
	}
	m.repeat(together)
	if !m.joined {
		return wire.GroupRecord{Type: wire.ChangeToInclude, Group: m.group}, true
	}
	m.last = true
	return wire.GroupRecord{Type: wire.ChangeToExclude, Group: m.group}, true
}

// answerRecord answers a query. Of sources that were asked about all are heard (RFC 9776
// section 5.2, table 5).
func (h *Host) answerRecord(now, _ time.Duration, m *member) (wire.GroupRecord, bool) {
	if now < m.answer {
		return wire.GroupRecord{}, false
	}
	r := wire.GroupRecord{Type: wire.ModeIsExclude, Group: m.group}
	if m.sources != nil {
		r.Type, r.Sources = wire.ModeIsInclude, m.sources
	}
	m.answer, m.sources, m.last = Never, nil, true
	return r, true
}

// repeat counts a report of a change, of which the next is due at a time.
func (m *member) repeat(at time.Duration) {
	m.changes--
	m.change = at
	if m.changes == 0 {
		m.change = Never
	}
}

// pollOld is poll for the older versions, whose messages are about one group each.
func (h *Host) pollOld(now time.Duration) (Message, bool) {
	for i := range h.members {
		m := &h.members[i]
		if now < m.change && now < m.answer {
			continue
		}
		if !m.joined {
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

// leave forgets a group that was left, and says so if we were the last to report it (RFC
// 2236 section 3, RFC 2710 section 4). IGMPv1 has no message for that; then the next one's
// turn comes.
func (h *Host) leave(now time.Duration, at int) (Message, bool) {
	m := h.members[at]
	h.members = slices.Delete(h.members, at, at+1)
	if !m.last || h.cfg.Protocol == wire.IGMP && h.version == 1 {
		return h.pollOld(now)
	}
	return h.about(wire.GroupLeave, m.group, allRouters[h.cfg.Protocol]), true
}

// about is a message of an older version.
func (h *Host) about(kind wire.GroupKind, group, dst netip.Addr) Message {
	return Message{wire.GroupMessage{Protocol: h.cfg.Protocol, Kind: kind, Version: h.version, Group: group}, dst}
}
