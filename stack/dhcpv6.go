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

// DHCPv6 for an interface. If routers advertise that addresses are available by DHCPv6
// (flag M), the interface requests an address and name servers. If they advertise only
// other information (flag O), it requests name servers alone. The interface loop runs the
// protocol machines. They send from the link-local address, and receivers pass on
// messages to the client port at that address.

// allDHCPServers is the group of DHCP servers and relay agents of a link (RFC 8415
// section 7.1).
var allDHCPServers = netip.AddrFrom16([16]byte{0xff, 2, 13: 1, 15: 2})

// dhcpv6 is the DHCPv6 state of an interface.
type dhcpv6 struct {
	client *dhcp.Client6  // nil: routers have not advertised addresses
	inform *dhcp.Inform   // nil: routers have not advertised other information alone
	ours   []netip.Prefix // addresses of the client that were not configured before
}

// startDHCPv6 starts to request what routers advertise, once the link-local address is
// usable.
func (l *ifaceLoop) startDHCPv6(said autoconf.Link) {
	d := &l.dhcp6
	switch {
	case !l.stack.tables.Load().settled(l.Interface, wire.LinkLocal6(l.mac)):
	case said.Managed && d.client == nil:
		d.client = dhcp.NewClient6(l.mac, newRandom())
		d.client.Start(l.now)
		l.asking6.Store(true)
	case said.Other && !said.Managed: // a request for addresses includes the rest (RFC 4861 section 4.2)
		l.startInform()
	}
}

// startInform starts to request configuration without addresses (RFC 8415 section
// 18.2.6).
func (l *ifaceLoop) startInform() {
	if d := &l.dhcp6; d.inform == nil {
		d.inform = dhcp.NewInform(l.mac, newRandom())
		d.inform.Start(l.now)
		l.asking6.Store(true)
	}
}

// newRandom returns a random source for a protocol machine.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// advanceDHCPv6 sends the clients' messages and applies their results.
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

// sendDHCPv6 sends a message to all DHCP servers of the link.
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

// receiveDHCPv6 processes a message to the client port.
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

// addresses returns the client's addresses, each as a /128. Only router advertisements
// say which other addresses are on the link (RFC 5942 section 4).
func (d *dhcpv6) addresses() (list []netip.Prefix) {
	if d.client != nil {
		for _, a := range d.client.Addresses() {
			list = append(list, netip.PrefixFrom(a.Addr, a.Addr.BitLen()))
		}
	}
	return list
}

// configureDHCPv6 applies the client's addresses to the interface. If the server has
// none, it requests other information.
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
	l.answerWaiting()
}

// refuseDHCPv6 notifies the client that another host uses an address.
func (l *ifaceLoop) refuseDHCPv6(addr netip.Addr) {
	if l.dhcp6.client != nil {
		l.dhcp6.client.Conflict(l.now, addr)
	}
}

// releaseDHCPv6 releases the addresses and stops requesting them.
func (l *ifaceLoop) releaseDHCPv6() {
	if l.dhcp6.client == nil {
		return
	}
	if m, ok := l.dhcp6.client.Close(); ok {
		l.sendDHCPv6(&m)
	}
	l.advanceDHCPv6()
}

// publishLearnt publishes what the interface has learned and notifies of the new DNS
// servers.
func (l *ifaceLoop) publishLearnt() {
	what := l.learnt()
	l.stack.change(func(t *tables) error {
		t.learned[l.index] = what
		return nil
	})
	l.stack.notifyDNS()
}

// learntServers returns the name servers of DHCPv6, followed by those of router
// advertisements (RFC 8106 section 5.3.1).
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

// forDHCPv6 reports whether a packet is for the DHCPv6 clients.
func (i *Interface) forDHCPv6(p *packet) bool {
	if !i.asking6.Load() || p.proto != wire.ProtoUDP || p.fragment || p.problem != 0 || p.dst != wire.LinkLocal6(i.mac) {
		return false
	}
	h, _, err := wire.ParseUDP(p.payload())
	return err == nil && h.DstPort == wire.DHCPv6ClientPort
}
