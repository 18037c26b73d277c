package stack

import (
	"net/netip"

	"loam/link"
	"loam/link/loop"
	"loam/wire"
)

// loopbackPrefix is the address of this host on every host (RFC 1122 section
// 3.2.1.3).
var loopbackPrefix = netip.MustParsePrefix("127.0.0.1/8")

// loopbackPrefix6 is the same of IPv6 (RFC 4291 section 2.5.3).
var loopbackPrefix6 = netip.MustParsePrefix("::1/128")

// attachLoopback makes "lo", the first interface. What is sent through it comes
// back, large segments and unfinished checksums included.
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

// What is sent to many is heard on this host, too, by who hears it on the interface that it leaves
// by (ip(7), IP_MULTICAST_LOOP). A gateway is no host of its link.

// loops reports whether what is sent to a group is for this host as well.
func (o *UDPOptions) loops(group netip.Addr) bool {
	if group.Is4() {
		return !o.NoLoop
	}
	return !o.NoLoop6
}

// loopBack has a copy of a packet to many arrive, if somebody here hears it. The copy is whole,
// however the packet is to be cut up, and its checksum, which may be left to the device, right.
func (sh *shard) loopBack(o *outgoing) {
	ifc := o.path.ifc
	if ifc.loopback || ifc.acceptAny {
		return
	}
	p := packet{ifc: ifc, broadcast: true}
	payload, ok := p.readOwn(o.frame.Bytes())
	if !ok || !sh.hears(&p) {
		return
	}
	p.frame = link.NewFrame(o.frame.Len())
	copy(p.frame.Bytes(), o.frame.Bytes())
	p.frame.ChecksumValid = true
	sh.stack.shards[shardOfPacket(sh.stack, &p, payload)].inject(sh, &p)
}

// hears reports whether this host is one of those that a packet is to.
func (sh *shard) hears(p *packet) bool {
	if !p.dst.IsMulticast() {
		return p.dst == limitedBroadcast || sh.tables.local[p.dst].broadcast
	}
	return sh.tables.inGroup(p.ifc, p.dst)
}

// readOwn fills in what the header says of a packet that was made here, and returns what is behind
// it; false: a program has made the header, and it is none.
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
