package stack

import (
	"net/netip"

	"loam/link"
	"loam/link/loop"
	"loam/wire"
)

// loopbackPrefix is the IPv4 loopback address and network (RFC 1122 section 3.2.1.3).
var loopbackPrefix = netip.MustParsePrefix("127.0.0.1/8")

// loopbackPrefix6 is the IPv6 loopback address (RFC 4291 section 2.5.3).
var loopbackPrefix6 = netip.MustParsePrefix("::1/128")

// attachLoopback attaches "lo", the first interface. Its device returns all packets,
// including large segments and partial checksums.
func (s *Stack) attachLoopback() {
	dev := loop.New(loop.Config{Name: "lo"})
	if _, err := s.attach(dev, InterfaceConfig{Name: "lo", MTU: dev.Info().MTU}, true); err != nil {
		panic("stack: no loopback: " + err.Error())
	}
	for _, p := range []netip.Prefix{loopbackPrefix, loopbackPrefix6} {
		if p.Addr().Is6() && s.config.NoIPv6 {
			continue
		}
		if err := s.AddAddress("lo", p); err != nil {
			panic("stack: no loopback: " + err.Error())
		}
	}
}

// Broadcast and multicast packets are also delivered on this host, to the sockets that receive them on the outgoing
// interface (ip(7), IP_MULTICAST_LOOP). On an interface with AcceptAny, the stack is a gateway and not a host of the
// link, so it does not deliver its own packets to itself.

// loops reports whether packets to a group are also delivered on this host.
func (o *UDPOptions) loops(group netip.Addr) bool {
	if group.Is4() {
		return !o.NoLoop
	}
	return !o.NoLoop6
}

// loopBack delivers a copy of a broadcast or multicast packet on this host if anything receives it. The copy is not
// fragmented, and its checksum counts as valid even if it was left to the device.
func (sh *shard) loopBack(o *outgoing) {
	ifc := o.path.ifc
	if ifc.loopback || ifc.acceptAny {
		return
	}
	p := packet{ifc: ifc, broadcast: true}
	payload, ok := p.readOwn(o.frame.Bytes())
	if !ok || !sh.receives(&p) {
		return
	}
	p.frame = link.NewFrame(o.frame.Len())
	copy(p.frame.Bytes(), o.frame.Bytes())
	p.frame.ChecksumValid = true
	sh.stack.shards[shardOfPacket(sh.stack, &p, payload)].inject(sh, &p)
}

// receives reports whether this host receives a broadcast or multicast packet.
func (sh *shard) receives(p *packet) bool {
	if !p.dst.IsMulticast() {
		return p.dst == limitedBroadcast || sh.tables.local[p.dst].broadcast
	}
	return sh.tables.inGroup(p.ifc, p.dst)
}

// readOwn sets the packet's fields from the header of a packet that was made here, and
// returns the payload. It returns false if a program made the header and it is malformed.
func (p *packet) readOwn(b []byte) (payload []byte, ok bool) {
	if typeOfIP(b) == wire.TypeIPv6 {
		h, payload, err := wire.ParseIPv6(b)
		p.src, p.dst, p.proto, p.tos, p.ttl = h.Src, h.Dst, h.NextHeader, h.TrafficClass, h.HopLimit
		p.headerLen = wire.IPv6Len
		return payload, err == nil
	}
	h, payload, err := wire.ParseIPv4(b)
	p.src, p.dst, p.proto, p.tos, p.ttl, p.fragment = h.Src, h.Dst, h.Protocol, h.TOS, h.TTL, h.IsFragment()
	p.headerLen = uint16(h.Len())
	return payload, err == nil
}
