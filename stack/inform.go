package stack

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"loam/link"
	"loam/stack/dhcp"
	"loam/stack/tcp"
	"loam/wire"
)

// Stateless DHCP for IPv6: an interface whose routers say that other things are to be had by
// DHCPv6 asks for name servers. The machine is run by the interface's loop; receivers pass on
// what comes to the client's port at the link-local address, from which it asks.

// allDHCPServers are the servers and relay agents of a link (RFC 8415 section 7.1).
var allDHCPServers = netip.AddrFrom16([16]byte{0xff, 2, 13: 1, 15: 2})

// startInform begins to ask, if routers say so.
func (l *ifaceLoop) startInform(other bool) {
	if !other || l.inform != nil {
		return
	}
	l.inform = dhcp.NewInform(l.mac, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	l.informing.Store(true)
	l.inform.Start(l.now)
}

// advanceInform sends what the client says.
func (l *ifaceLoop) advanceInform() {
	if l.inform == nil {
		return
	}
	m, ok := l.inform.Poll(l.now)
	if !ok {
		return
	}
	data, src := m.Append(nil), wire.LinkLocal6(l.mac)
	f := link.NewFrame(len(data))
	copy(f.Bytes(), data)
	h := wire.UDP{SrcPort: wire.DHCPv6ClientPort, DstPort: wire.DHCPv6ServerPort, PayloadLen: len(data)}
	h.Put(f.Prepend(wire.UDPLen))
	wire.PutUDPChecksum(f.Bytes(), src, allDHCPServers)
	putIPv6(f, &wire.IPv6{NextHeader: wire.ProtoUDP, HopLimit: 1, Src: src, Dst: allDHCPServers})
	l.sendEthernet(wire.MulticastMAC6(allDHCPServers), wire.TypeIPv6, f)
}

func (l *ifaceLoop) informDeadline() tcp.Time {
	if l.inform == nil {
		return tcp.Never
	}
	return l.inform.Deadline()
}

// receiveInform takes a message that came to the client's port.
func (l *ifaceLoop) receiveInform(b []byte) {
	m, err := wire.ParseDHCPv6(b)
	if err != nil {
		l.stack.tally.count6(UDPMalformed)
		return
	}
	if l.inform == nil || !l.inform.Receive(l.now, &m) {
		return
	}
	l.stack.change(func(t *tables) error {
		what := t.learned[l.index]
		what.dns = l.learntServers()
		t.learned[l.index] = what
		return nil
	})
	l.stack.tellDNS()
}

// learntServers are the name servers of DHCPv6, and behind them those of advertisements (RFC
// 8106 section 5.3.1).
func (l *ifaceLoop) learntServers() []netip.Addr {
	var all []netip.Addr
	if l.inform != nil {
		for _, server := range l.inform.Servers() {
			all = append(all, l.scoped(server))
		}
	}
	for _, server := range l.auto.held.DNS {
		if server = l.scoped(server); !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	return all
}

// forInform reports whether a packet is for the client.
func (i *Interface) forInform(p *packet) bool {
	if !i.informing.Load() || p.proto != wire.ProtoUDP || p.fragment || p.problem != 0 || p.dst != wire.LinkLocal6(i.mac) {
		return false
	}
	h, _, err := wire.ParseUDP(p.payload())
	return err == nil && h.DstPort == wire.DHCPv6ClientPort
}
