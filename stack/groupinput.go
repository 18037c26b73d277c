package stack

import (
	"net/netip"

	"loam/wire"
)

// Input of IGMP and MLD messages. A shard checks the packets that carry them. It passes the messages that matter to a host to
// the interface loop: queries, and reports of other hosts in the older protocol versions.

// inputIGMP processes an IGMP packet. The caller frees the frame.
func (sh *shard) inputIGMP(p *packet) {
	b := p.payload()
	switch {
	case len(b) > 0 && !wire.IGMP.Knows(b[0]): // DVMRP, PIM and other protocols (RFC 9776 section 4)
		sh.tally.count(GroupReceived)
		sh.tally.count(GroupIgnored)
	case !wire.IGMPChecksumOK(b):
		sh.tally.count(GroupReceived)
		sh.tally.count(GroupMalformed)
	default:
		sh.inputGroup(p, wire.IGMP)
	}
}

// inputGroup processes an IGMP or MLD message whose checksum is valid.
func (sh *shard) inputGroup(p *packet, protocol wire.GroupProtocol) {
	sh.tally.count(GroupReceived)
	m, err := wire.ParseGroupMessage(protocol, p.payload())
	believed := believedGroup6
	if protocol == wire.IGMP {
		believed = believedGroup4
	}
	switch {
	case err != nil:
		sh.tally.count(GroupMalformed)
		return
	case p.ifc.groupless || m.Kind == wire.GroupReport || m.Kind == wire.GroupLeave || !believed(p, &m):
		sh.tally.count(GroupIgnored)
		return
	}
	select {
	case p.ifc.groupsIn <- m:
	default:
		sh.tally.count(GroupOverflow)
	}
}

// believedGroup4 reports whether a query can come from this link (RFC 9776 section 9.1). Queries of IGMPv2 and IGMPv3 carry
// the Router Alert option. General queries to a group are sent to all systems.
func believedGroup4(p *packet, m *wire.GroupMessage) bool {
	if m.Kind != wire.GroupQuery {
		return true
	}
	if m.Group.IsUnspecified() && p.dst.IsMulticast() && p.dst != allSystems {
		return false
	}
	return m.Version == 1 || alerts4(p.frame.Bytes())
}

// allSystems is the group of all IPv4 hosts (RFC 1112 section 4).
var allSystems = netip.AddrFrom4([4]byte{224, 0, 0, 1})

// alerts4 reports whether the packet b has the Router Alert option.
func alerts4(b []byte) (alerts bool) {
	h, _, err := wire.ParseIPv4(b)
	if err != nil {
		panic("stack: a receiver passed on a malformed packet")
	}
	for kind := range h.EachOption {
		alerts = alerts || kind == wire.OptRouterAlert
	}
	return alerts
}

// believedGroup6 reports whether a message can come from this link (RFC 9777 section
// 6.2): it has a link-local source, hop limit 1 and the Router Alert option.
func believedGroup6(p *packet, _ *wire.GroupMessage) bool {
	return p.src.IsLinkLocalUnicast() && p.ttl == 1 && alerts6(p.frame.Bytes())
}

// alerts6 reports whether the packet b starts with a hop-by-hop options header that contains Router Alert.
func alerts6(b []byte) bool {
	h, payload, err := wire.ParseIPv6(b)
	if err != nil || h.NextHeader != wire.ProtoHopByHop {
		return false
	}
	x, _, err := wire.ParseIPv6Ext(payload)
	if err != nil {
		return false
	}
	for at := 0; ; {
		o, next, ok, _ := wire.NextIPv6Option(x.Data, at)
		if !ok || o.Type == wire.IPv6OptRouterAlert {
			return ok
		}
		at = next
	}
}
