package stack

import (
	"net/netip"

	"loam/link"
	"loam/wire"
)

// UDP-Lite (RFC 3828). Its sockets are UDPConns in a table of their own, and its ports are separate from those of UDP.
// Devices do not compute its checksum. Its packets count as UDP in the counters.

// ListenUDPLite returns a UDP-Lite socket bound to local. Errors: those of ListenUDP.
func (s *Stack) ListenUDPLite(local netip.AddrPort, o UDPOptions) (*UDPConn, error) {
	return s.listenUDP(wire.ProtoUDPLite, local, o)
}

// putUDPLite prepends the header to a payload. A coverage that exceeds the datagram means all of it.
func putUDPLite(f *link.Frame, from, to, coverage uint16, ip *ipHeader) {
	if n := wire.UDPLen + f.Len(); coverage != 0 && int(coverage) > n {
		coverage = uint16(n)
	}
	h := wire.UDPLite{SrcPort: from, DstPort: to, Coverage: coverage}
	h.Put(f.Prepend(wire.UDPLen))
	wire.PutUDPLiteChecksum(f.Bytes(), ip.src, ip.dst)
}

// inputUDPLite processes a UDP-Lite packet. It takes ownership of the frame.
func (sh *shard) inputUDPLite(p *packet) {
	sh.tally.countBy(p.src, UDPReceived)
	b := p.payload()
	h, payload, err := wire.ParseUDPLite(b)
	if err != nil {
		sh.dropUDP(p, UDPMalformed)
		return
	}
	if !wire.UDPLiteChecksumOK(b, p.src, p.dst) {
		sh.dropUDP(p, UDPChecksum)
		return
	}
	from, to := netip.AddrPortFrom(p.src, h.SrcPort), netip.AddrPortFrom(p.dst, h.DstPort)
	if p.src.Is6() {
		from, to = p.ifc.scopedPort(from), p.ifc.scopedPort(to)
	}
	info := p.datagram(sh.now, from, to, len(payload))
	if int(h.Coverage) < len(b) {
		info.partial = h.Coverage
	}
	if p.broadcast {
		sh.deliverToAll(&sh.lites, p, payload, info)
		return
	}
	c := sh.lites.Find(from, to, p.ifc.index)
	if c == nil {
		sh.refuseUDP(p)
		return
	}
	p.frame.TrimFront(int(p.headerLen) + wire.UDPLen)
	p.frame.Resize(len(payload))
	sh.deliverTo(c, p.frame, info)
}

// covers reports whether the socket accepts the checksum coverage of a datagram.
func (c *UDPConn) covers(info *Datagram) bool {
	if info.partial == 0 {
		return true
	}
	least := c.Options().ReceiveCoverage
	return least != FullCoverage && int(info.partial) >= least
}
