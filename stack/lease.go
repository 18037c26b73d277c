package stack

import (
	"context"
	"math/rand/v2"
	"net/netip"

	"loam/link"
	"loam/stack/configure"
	"loam/stack/dhcp"
	"loam/stack/neigh"
	"loam/wire"
)

// The DHCP client of an interface: see configure.Lease. The interface loop runs it. The client works before the interface has
// an address, so it builds its own packets instead of using a socket, and receivers pass it the messages to the client port.

// UDP ports of DHCP (RFC 2131 section 4.1).
const (
	dhcpServerPort = 67
	dhcpClientPort = 68
)

// DHCP starts the DHCP client of the interface and waits for the first lease. The client configures an address, routes and DNS
// servers, and renews the lease until the stack is closed or ReleaseDHCP is called. If ctx ends first, DHCP returns its error
// and the client keeps trying. hostName is sent to the server and may be empty. Errors: ErrInvalid if the link is not
// Ethernet, ErrClosed.
func (i *Interface) DHCP(ctx context.Context, hostName string) (dhcp.Lease, error) {
	if i.medium != link.Ethernet {
		return dhcp.Lease{}, ErrInvalid
	}
	got := make(chan dhcp.Lease, 1)
	i.post(func(l *ifaceLoop) { l.awaitLease(hostName, got) })
	select {
	case lease := <-got:
		return lease, nil
	case <-ctx.Done():
		i.post(func(l *ifaceLoop) {
			if l.dhcp != nil {
				l.dhcp.Forget(got)
			}
		})
		return dhcp.Lease{}, context.Cause(ctx)
	case <-i.ended:
		return dhcp.Lease{}, ErrClosed
	}
}

// ReleaseDHCP releases the lease and stops the client. It also releases addresses
// obtained by DHCPv6 and stops requesting them.
func (i *Interface) ReleaseDHCP() {
	done := make(chan struct{})
	i.post(func(l *ifaceLoop) {
		if l.dhcp != nil {
			l.dhcp.Close(l.now)
			l.leasing.Store(false)
			l.dhcp = nil
		}
		if l.auto != nil {
			l.auto.ReleaseDHCPv6(l.now)
		}
		close(done)
	})
	select {
	case <-done:
	case <-i.ended:
	}
}

// awaitLease starts the DHCP client unless it is running. The first lease is sent to the channel got.
func (l *ifaceLoop) awaitLease(hostName string, got chan dhcp.Lease) {
	if l.dhcp == nil {
		l.leasing.Store(true)
		l.dhcp = configure.NewLease(l.now, configured{l}, dhcp.Config{MAC: l.mac, HostName: hostName, MTU: l.mtu, Rand: newRandom()})
	}
	l.dhcp.Await(got)
}

// newRandom returns a source of random numbers for a DHCP client or for router discovery.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// receiveLease processes a DHCP message to the client port.
func (l *ifaceLoop) receiveLease(b []byte) {
	if l.dhcp == nil {
		return
	}
	m, err := wire.ParseDHCPv4(b)
	if err != nil {
		l.stack.tally.count(UDPMalformed)
		return
	}
	l.dhcp.Receive(l.now, &m)
}

// configured gives package configure access to a network interface.
type configured struct{ l *ifaceLoop }

// AddAddress implements configure.Addresses.
func (c configured) AddAddress(p netip.Prefix) bool { return c.l.stack.AddAddress(c.l.name, p) == nil }

// RemoveAddress implements configure.Addresses.
func (c configured) RemoveAddress(p netip.Prefix) { c.l.stack.RemoveAddress(c.l.name, p) }

// AddRoute implements configure.LeaseLink.
func (c configured) AddRoute(r configure.Route) { c.l.stack.AddRoute(c.route(r)) }

// RemoveRoute implements configure.LeaseLink.
func (c configured) RemoveRoute(r configure.Route) { c.l.stack.RemoveRoute(c.route(r)) }

func (c configured) route(r configure.Route) Route {
	return Route{Dst: r.Dst, Gateway: r.Gateway, Interface: c.l.name, Metric: r.Metric, MTU: r.MTU}
}

// SetDNS implements configure.LeaseLink.
func (c configured) SetDNS(servers []netip.Addr) { c.l.stack.SetDNS(servers) }

// Lost implements configure.LeaseLink.
func (c configured) Lost(address netip.Prefix, reason dhcp.Reason) {
	c.l.stack.config.Log.Warn("the address has been lost", "interface", c.l.name, "address", address, "reason", reason)
}

// SendDHCP implements configure.LeaseLink.
func (c configured) SendDHCP(m dhcp.Message, last bool) { c.l.sendLease(m, last) }

// sendLease sends a message of the DHCP client. A broadcast is sent directly as a frame, because the
// interface may have no address yet. Unicast messages use the normal output path.
func (l *ifaceLoop) sendLease(m dhcp.Message, last bool) {
	f := link.FrameOf(m.Data)
	h := wire.UDP{SrcPort: m.Src.Port(), DstPort: m.Dst.Port(), PayloadLen: len(m.Data)}
	h.Put(f.Prepend(wire.UDPLen))
	src, dst := m.Src.Addr(), m.Dst.Addr()
	wire.PutUDPChecksum(f.Bytes(), src, dst)
	ip := wire.IPv4{TTL: defaultTTL, Protocol: wire.ProtoUDP, Src: src, Dst: dst}
	putIPv4(f, &ip)
	if dst == limitedBroadcast {
		l.sendEthernet(wire.Broadcast, wire.TypeIPv4, f)
		return
	}
	path, err := l.stack.tables.Load().route(src, dst)
	if err != nil {
		l.stack.tally.count(IPNoRoute)
		f.Free()
		return
	}
	switch mac, answer := l.arp.Lookup(l.now, path.nextHop); {
	case answer == neigh.Found:
		l.sendEthernet(mac, wire.TypeIPv4, f)
	case last: // the address is about to be removed, so ARP cannot resolve any more
		l.sendEthernet(wire.Broadcast, wire.TypeIPv4, f)
	default:
		l.stack.shardFor(m.Src, m.Dst).submit(&outgoing{frame: f, path: path, owner: noOwner{}})
	}
}

// noOwner is the owner of datagrams that belong to no socket.
type noOwner struct{}

func (noOwner) sent(int) {}

// forLease reports whether a packet is for the DHCP client. The client receives packets
// to addresses that the interface does not have yet.
func (i *Interface) forLease(p *packet) bool {
	if p.proto != wire.ProtoUDP || p.fragment || !i.leasing.Load() {
		return false
	}
	h, _, err := wire.ParseUDP(p.payload())
	return err == nil && h.SrcPort == dhcpServerPort && h.DstPort == dhcpClientPort
}

// hand passes the payload of a UDP packet to a DHCP client in the interface loop. It takes ownership of the frame. If the
// checksum is wrong or the channel is full, the packet is dropped: hand returns the counter for the reason, and false.
func (p *packet) hand(to chan<- []byte) (Counter, bool) {
	defer p.frame.Free()
	b := p.payload()
	_, payload, err := wire.ParseUDP(b)
	if err != nil || !wire.UDPChecksumOK(b, p.src, p.dst) && !p.frame.ChecksumValid {
		return UDPChecksum, false
	}
	select {
	case to <- append([]byte(nil), payload...):
		return 0, true
	default:
		return UDPOverflow, false
	}
}

// allowedWithoutSource reports whether a packet without a source address is acceptable: a DHCP
// client's message to a server, or an IGMP message of a switch without an address (RFC
// 4541 section 2.1.1).
func allowedWithoutSource(p *packet) bool {
	if p.proto == wire.ProtoIGMP {
		return true
	}
	if p.proto != wire.ProtoUDP || p.fragment {
		return false
	}
	h, _, err := wire.ParseUDP(p.payload())
	return err == nil && h.SrcPort == dhcpClientPort && h.DstPort == dhcpServerPort
}
