package stack

import (
	"net/netip"

	"loam/wire"
)

// Messages of IGMP and MLD that arrive. A shard checks what they have come in, and passes
// what a host has a use for to the interface's loop: queries, and reports of others in the
// older versions.

// inputIGMP takes an IGMP packet. The caller frees the frame.
func (sh *shard) inputIGMP(p *packet) {
	b := p.payload()
	switch {
	case len(b) > 0 && !wire.IGMP.Knows(b[0]): // DVMRP, PIM and others (RFC 9776 section 4)
		sh.tally.count(GroupReceived)
		sh.tally.count(GroupIgnored)
	case !wire.IGMPChecksumOK(b):
		sh.tally.count(GroupReceived)
		sh.tally.count(GroupMalformed)
	default:
		sh.inputGroup(p, wire.IGMP)
	}
}

// inputGroup takes a message with a right checksum.
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

// believedGroup4 reports whether a query can be one of this link (RFC 9776 section 9.1):
// those of IGMPv2 and 3 have the option Router Alert, and general ones go to all systems, if
// to a group.
func believedGroup4(p *packet, m *wire.GroupMessage) bool {
	if m.Kind != wire.GroupQuery {
		return true
	}
	if m.Group.IsUnspecified() && p.dst.IsMulticast() && p.dst != allSystems {
		return false
	}
	return m.Version == 1 || alerts4(p.frame.Bytes())
}

// allSystems is the group that every host of IPv4 is in (RFC 1112 section 4).
var allSystems = netip.AddrFrom4([4]byte{224, 0, 0, 1})

// alerts4 reports whether the packet b has the option Router Alert.
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

// believedGroup6 reports whether a message can have come from this link (RFC 9777 section
// 6.2): from a link-local address, with a hop limit of 1 and the option Router Alert.
func believedGroup6(p *packet, _ *wire.GroupMessage) bool {
	return p.src.IsLinkLocalUnicast() && p.ttl == 1 && alerts6(p.frame.Bytes())
}

// alerts6 reports whether the first header behind the fixed one is of hop-by-hop options,
// with Router Alert among them.
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
