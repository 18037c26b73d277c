package stack

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"loam/link"
	"loam/stack/autoconf"
	"loam/stack/dhcp"
	"loam/stack/tcp"
	"loam/wire"
)

// DHCP for IPv6: an interface whose routers say that addresses are to be had by it asks for one,
// and for name servers; for these alone where that is all that is to be had. The machines are run
// by the interface's loop; receivers pass on what comes to the client's port at the link-local
// address, from which they ask.

// allDHCPServers are the servers and relay agents of a link (RFC 8415 section 7.1).
var allDHCPServers = netip.AddrFrom16([16]byte{0xff, 2, 13: 1, 15: 2})

// dhcpv6 is the part of an interface that asks.
type dhcpv6 struct {
	client *dhcp.Client6  // nil: routers have not said that there are addresses
	inform *dhcp.Inform   // nil: nor that there is anything else without them
	ours   []netip.Prefix // of the client's addresses, the ones that nobody had configured before
}

// startDHCPv6 begins to ask for what routers say is to be had, once there is an address to ask from.
func (l *ifaceLoop) startDHCPv6(said autoconf.Link) {
	d := &l.dhcp6
	switch {
	case !l.stack.tables.Load().settled(l.Interface, wire.LinkLocal6(l.mac)):
	case said.Managed && d.client == nil:
		d.client = dhcp.NewClient6(l.mac, newRandom())
		d.client.Start(l.now)
		l.asking6.Store(true)
	case said.Other && !said.Managed: // with addresses comes the rest (RFC 4861 section 4.2)
		l.startInform()
	}
}

func (l *ifaceLoop) startInform() {
	if d := &l.dhcp6; d.inform == nil {
		d.inform = dhcp.NewInform(l.mac, newRandom())
		d.inform.Start(l.now)
		l.asking6.Store(true)
	}
}

// newRandom is chance for a machine.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// advanceDHCPv6 sends what the clients say, and configures what they have got.
func (l *ifaceLoop) advanceDHCPv6() {
	if c := l.dhcp6.client; c != nil {
		if m, ok := c.Poll(l.now); ok {
			l.sendDHCPv6(&m)
		}
		if c.Changed() {
			l.configureDHCPv6()
		}
	}
	if c := l.dhcp6.inform; c != nil {
		if m, ok := c.Poll(l.now); ok {
			l.sendDHCPv6(&m)
		}
	}
}

func (l *ifaceLoop) dhcpv6Deadline() tcp.Time {
	d := tcp.Never
	if l.dhcp6.client != nil {
		d = l.dhcp6.client.Deadline()
	}
	if l.dhcp6.inform != nil {
		d = min(d, l.dhcp6.inform.Deadline())
	}
	return d
}

// sendDHCPv6 sends a message to all servers of the link.
func (l *ifaceLoop) sendDHCPv6(m *wire.DHCPv6) {
	data, src := m.Append(nil), wire.LinkLocal6(l.mac)
	f := link.NewFrame(len(data))
	copy(f.Bytes(), data)
	h := wire.UDP{SrcPort: wire.DHCPv6ClientPort, DstPort: wire.DHCPv6ServerPort, PayloadLen: len(data)}
	h.Put(f.Prepend(wire.UDPLen))
	wire.PutUDPChecksum(f.Bytes(), src, allDHCPServers)
	putIPv6(f, &wire.IPv6{NextHeader: wire.ProtoUDP, HopLimit: 1, Src: src, Dst: allDHCPServers})
	l.sendEthernet(wire.MulticastMAC6(allDHCPServers), wire.TypeIPv6, f)
}

// receiveDHCPv6 takes a message that came to the client's port.
func (l *ifaceLoop) receiveDHCPv6(b []byte) {
	m, err := wire.ParseDHCPv6(b)
	if err != nil {
		l.stack.tally.count6(UDPMalformed)
		return
	}
	if l.dhcp6.client != nil {
		l.dhcp6.client.Receive(l.now, &m)
	}
	if l.dhcp6.inform != nil && l.dhcp6.inform.Receive(l.now, &m) {
		l.publishLearnt()
	}
}

// addresses are what the client has got. Each is by itself: which others are on the link is for
// routers to say (RFC 5942 section 4).
func (d *dhcpv6) addresses() (list []netip.Prefix) {
	if d.client != nil {
		for _, a := range d.client.Addresses() {
			list = append(list, netip.PrefixFrom(a.Addr, a.Addr.BitLen()))
		}
	}
	return list
}

// configureDHCPv6 makes the interface what the client says. Where there are no addresses, there
// may be the rest.
func (l *ifaceLoop) configureDHCPv6() {
	d := &l.dhcp6
	wanted := d.addresses()
	d.ours = slices.DeleteFunc(d.ours, func(p netip.Prefix) bool {
		if slices.Contains(wanted, p) {
			return false
		}
		l.stack.RemoveAddress(l.name, p)
		return true
	})
	for _, p := range wanted {
		if !slices.Contains(d.ours, p) && l.stack.AddAddress(l.name, p) == nil {
			d.ours = append(d.ours, p)
		}
	}
	if d.client.None() {
		l.startInform()
	}
	l.publishLearnt()
	l.tellAddress()
}

// refuseDHCPv6 tells the client that another host has an address.
func (l *ifaceLoop) refuseDHCPv6(addr netip.Addr) {
	if l.dhcp6.client != nil {
		l.dhcp6.client.Conflict(l.now, addr)
	}
}

// releaseDHCPv6 gives the addresses back, and asks for no others.
func (l *ifaceLoop) releaseDHCPv6() {
	if l.dhcp6.client == nil {
		return
	}
	if m, ok := l.dhcp6.client.Close(); ok {
		l.sendDHCPv6(&m)
	}
	l.advanceDHCPv6()
}

// publishLearnt has everybody look up what has been learnt.
func (l *ifaceLoop) publishLearnt() {
	what := l.learnt()
	l.stack.change(func(t *tables) error {
		t.learned[l.index] = what
		return nil
	})
	l.stack.tellDNS()
}

// learntServers are the name servers of DHCPv6, and behind them those of advertisements (RFC
// 8106 section 5.3.1).
func (l *ifaceLoop) learntServers() []netip.Addr {
	var said, all []netip.Addr
	if l.dhcp6.client != nil {
		said = append(said, l.dhcp6.client.Servers()...)
	}
	if l.dhcp6.inform != nil {
		said = append(said, l.dhcp6.inform.Servers()...)
	}
	for _, server := range append(said, l.auto.held.DNS...) {
		if server = l.scoped(server); !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	return all
}

// forDHCPv6 reports whether a packet is for the clients.
func (i *Interface) forDHCPv6(p *packet) bool {
	if !i.asking6.Load() || p.proto != wire.ProtoUDP || p.fragment || p.problem != 0 || p.dst != wire.LinkLocal6(i.mac) {
		return false
	}
	h, _, err := wire.ParseUDP(p.payload())
	return err == nil && h.DstPort == wire.DHCPv6ClientPort
}
