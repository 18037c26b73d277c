package stack

import (
	"net/netip"

	"loam/link"
	"loam/wire"
)

// DHCPv6 for an interface: see configure.Auto. The clients send from the link-local address, and receivers pass on
// messages to the client port at that address.

// allDHCPServers is the group of DHCP servers and relay agents of a link (RFC 8415 section 7.1).
var allDHCPServers = netip.AddrFrom16([16]byte{0xff, 2, 13: 1, 15: 2})

// SendDHCPv6 implements configure.AutoLink.
func (c configured) SendDHCPv6(m *wire.DHCPv6) {
	l := c.l
	data, src := m.Append(nil), wire.LinkLocal6(l.mac)
	f := link.FrameOf(data)
	h := wire.UDP{SrcPort: wire.DHCPv6ClientPort, DstPort: wire.DHCPv6ServerPort, PayloadLen: len(data)}
	h.Put(f.Prepend(wire.UDPLen))
	wire.PutUDPChecksum(f.Bytes(), src, allDHCPServers)
	putIPv6(f, &wire.IPv6{NextHeader: wire.ProtoUDP, HopLimit: 1, Src: src, Dst: allDHCPServers})
	l.sendEthernet(wire.MulticastMAC6(allDHCPServers), wire.TypeIPv6, f)
}

// receiveDHCPv6 processes a message to the client port.
func (l *ifaceLoop) receiveDHCPv6(b []byte) {
	m, err := wire.ParseDHCPv6(b)
	switch {
	case err != nil:
		l.stack.tally.count6(UDPMalformed)
	case l.auto != nil:
		l.auto.ReceiveDHCPv6(l.now, &m)
	}
}

// forDHCPv6 reports whether a packet is for the DHCPv6 clients.
func (i *Interface) forDHCPv6(p *packet) bool {
	if !i.asking6.Load() || p.proto != wire.ProtoUDP || p.fragment || p.problem != 0 || p.dst != wire.LinkLocal6(i.mac) {
		return false
	}
	h, _, err := wire.ParseUDP(p.payload())
	return err == nil && h.DstPort == wire.DHCPv6ClientPort
}
