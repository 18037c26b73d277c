package stack

import (
	"context"
	"net/netip"
	"slices"

	"loam/link"
	"loam/stack/dhcp"
	"loam/stack/neigh"
	"loam/stack/tcp"
	"loam/wire"
)

// The DHCP client of an interface. The interface loop runs the protocol machine. The
// client works before the interface has an address, so it builds its own packets instead
// of using a socket, and receivers pass it the messages to the client port.

// UDP ports of DHCP (RFC 2131 section 4.1).
const (
	dhcpServerPort = 67
	dhcpClientPort = 68
)

// leaser is the state of the DHCP client of an interface.
type leaser struct {
	client  *dhcp.Client
	waiting []chan dhcp.Lease // one per waiting call of DHCP; capacity 1, sent to once
	held    dhcp.Lease        // the configured lease, if holds is set
	holds   bool
}

// DHCP starts the DHCP client of the interface and waits for the first lease. The client
// configures an address, routes and DNS servers, and renews the lease until the stack is
// closed or ReleaseDHCP is called. If ctx ends first, DHCP returns its error and the
// client keeps trying. hostName is sent to the server and may be empty. Errors:
// ErrInvalid if the link is not Ethernet, ErrClosed.
func (i *Interface) DHCP(ctx context.Context, hostName string) (dhcp.Lease, error) {
	if i.medium != link.Ethernet {
		return dhcp.Lease{}, ErrInvalid
	}
	got := make(chan dhcp.Lease, 1)
	i.post(func(l *ifaceLoop) { l.startLease(hostName, got) })
	select {
	case lease := <-got:
		return lease, nil
	case <-ctx.Done():
		i.post(func(l *ifaceLoop) { l.stopWaiting(got) })
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
			l.dhcp.client.Close(l.now)
			l.advanceLease()
			l.leasing.Store(false)
			l.dhcp = nil
		}
		l.releaseDHCPv6()
		close(done)
	})
	select {
	case <-done:
	case <-i.ended:
	}
}

// startLease starts the DHCP client unless it is running. The first lease is sent to got.
func (l *ifaceLoop) startLease(hostName string, got chan dhcp.Lease) {
	if l.dhcp == nil {
		client := dhcp.NewClient(dhcp.Config{MAC: l.mac, HostName: hostName, MTU: l.mtu, Rand: newRandom()})
		l.dhcp = &leaser{client: client}
		l.leasing.Store(true)
		client.Start(l.now)
	}
	if l.dhcp.holds {
		got <- l.dhcp.held
		return
	}
	l.dhcp.waiting = append(l.dhcp.waiting, got)
}

// stopWaiting removes a call of DHCP that has ended.
func (l *ifaceLoop) stopWaiting(got chan dhcp.Lease) {
	if l.dhcp != nil {
		l.dhcp.waiting = removeOne(l.dhcp.waiting, got)
	}
}

// receiveLease processes a message to the client port.
func (l *ifaceLoop) receiveLease(b []byte) {
	if l.dhcp == nil {
		return
	}
	m, err := wire.ParseDHCPv4(b)
	if err != nil {
		l.stack.tally.count(UDPMalformed)
		return
	}
	l.dhcp.client.Receive(l.now, &m)
}

// advanceLease runs the client's timers, sends its message, and applies its events.
func (l *ifaceLoop) advanceLease() {
	if l.dhcp == nil {
		return
	}
	l.dhcp.client.Tick(l.now)
	if m, ok := l.dhcp.client.Poll(); ok {
		l.sendLease(m)
	}
	if e, ok := l.dhcp.client.NextEvent(); ok {
		l.configure(e)
	}
}

func (l *ifaceLoop) leaseDeadline() tcp.Time {
	if l.dhcp == nil {
		return tcp.Never
	}
	return l.dhcp.client.Deadline()
}

// configure applies an event of the client to the interface.
func (l *ifaceLoop) configure(e dhcp.Event) {
	d := l.dhcp
	before := leaseRoutes(l.name, &d.held)
	if d.holds && (e.Kind == dhcp.Lost || e.Lease.Addr != d.held.Addr) {
		l.stack.RemoveAddress(l.name, d.held.Addr)
		l.changeRoutes(before, nil)
		d.holds, d.held, before = false, dhcp.Lease{}, nil
	}
	if e.Kind == dhcp.Lost {
		l.stack.config.Log.Warn("the address has been lost", "interface", l.name, "address", e.Lease.Addr, "reason", e.Reason)
		return
	}
	if !d.holds {
		l.stack.AddAddress(l.name, e.Lease.Addr)
	}
	l.changeRoutes(before, leaseRoutes(l.name, &e.Lease))
	if len(e.Lease.DNS) > 0 {
		l.stack.SetDNS(e.Lease.DNS)
	}
	d.held, d.holds = e.Lease, true
	for _, got := range d.waiting {
		got <- e.Lease
	}
	d.waiting = nil
}

// changeRoutes replaces routes. Routes in both lists are not touched.
func (l *ifaceLoop) changeRoutes(before, after []Route) {
	for _, r := range before {
		if !slices.Contains(after, r) {
			l.stack.RemoveRoute(r)
		}
	}
	for _, r := range after {
		if !slices.Contains(before, r) {
			l.stack.AddRoute(r)
		}
	}
}

// leaseRoutes returns the routes of a lease.
func leaseRoutes(name string, lease *dhcp.Lease) []Route {
	var routes []Route
	for _, r := range lease.Routes {
		routes = append(routes, Route{Dst: r.Dst, Gateway: r.Gateway, Interface: name, MTU: lease.MTU})
	}
	for n, router := range lease.Routers {
		routes = append(routes, Route{Dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Gateway: router, Interface: name, Metric: n, MTU: lease.MTU})
	}
	return routes
}

// conflict notifies the client that another host uses our address.
func (l *ifaceLoop) conflict(addr netip.Addr) {
	if l.dhcp != nil && l.dhcp.holds && l.dhcp.held.Addr.Addr() == addr {
		l.dhcp.client.Conflict(l.now)
	}
}

// sendLease sends a message of the client. A broadcast is sent directly as a frame,
// because the interface may have no address yet. Unicast messages use the normal output
// path.
func (l *ifaceLoop) sendLease(m dhcp.Message) {
	f := link.NewFrame(len(m.Data))
	copy(f.Bytes(), m.Data)
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
	case l.dhcp.client.State() == dhcp.Stopped: // the last message: the address is about to be removed, so ARP cannot resolve any more
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

// hand passes the payload of a UDP packet to a DHCP client in the interface loop. It
// drops the payload if the channel is full. It takes ownership of the frame. If ok is
// false, the counter says why the packet was dropped.
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
