package usernet

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"loam/stack"
	"loam/stack/tcp"
	"loam/wire"
)

// Gateway is the network of one guest. Its methods are safe for concurrent use.
type Gateway struct {
	config Config // the configuration, with defaults for unset fields
	stack  *stack.Stack
	epoch  time.Time // when the gateway was created; times of flows are relative to it
	tally  tally

	memory      *memory
	connections slots // limit on TCP connections of both directions together
	dials       slots // limit on concurrent connection attempts to the host
	flows       *flowTable
	pinger      *pinger // forwards echo requests of IPv4
	pinger6     *pinger
	dns         *dnsForwarder
	published   *published
	handing     *handing    // nil: all connections are relayed
	sockets     []io.Closer // sockets of the gateway's stack
	relays      sync.Map    // set of *relay: the relays that are running
	hint        sync.Once   // makes deny log its advice only once

	ctx    context.Context // cancelled by Close
	cancel context.CancelFunc
	once   sync.Once
	wg     sync.WaitGroup // counts all goroutines started by the gateway; the stack counts those of request handlers
	err    error          // result of Close, for later calls
}

// New creates and starts a gateway. When it returns, all forwards are bound. Errors: a
// *ForwardError if a host port is not available, or an error about the configuration. On
// error, everything is closed again, including the device and Program.
func New(c Config) (*Gateway, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, closing(c, err)
	}
	ports, err := bindForwards(c.Forwards)
	if err != nil {
		return nil, closing(c, err)
	}
	g := &Gateway{
		config: c, published: ports, epoch: time.Now(),
		memory: newMemory(c.Limits.Memory), connections: newSlots(c.Limits.Connections), dials: newSlots(c.Limits.Dials),
		flows: newFlowTable(c.Limits.Flows, c.Limits.FlowIdle),
	}
	if c.Program != nil {
		g.handing = newHanding(c.Program)
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	// One shard is enough: the link has one queue, which one goroutine reads, and the relays copy the data in
	// goroutines of their own. A second shard would only split the work of the first.
	g.stack = stack.New(stack.Config{Shards: 1, Log: c.Log, TCP: tcpConfig()})
	g.stack.Forward(stack.Forwarder{TCP: g.handleTCP, UDP: g.handleUDP, Ping: g.handlePing})
	socket, err := newICMPSocket(ipv4)
	g.pinger = newPinger(c.Limits.Pings, socket, err, &g.tally, c.Log)
	socket, err = newICMPSocket(ipv6)
	g.pinger6 = newPinger(c.Limits.Pings, socket, err, &g.tally, c.Log)
	if err := g.start(); err != nil {
		g.Close()
		return nil, closing(c, err)
	}
	return g, nil
}

// closing closes Device and Program of a configuration whose gateway could not be created, and returns err.
func closing(c Config, err error) error {
	if c.Device != nil {
		c.Device.Close()
	}
	if c.Program != nil {
		c.Program.Close()
	}
	return err
}

// tcpConfig returns short timeouts for finished connections. The link is inside one machine, so no segment is older
// than a second. A guest that opens and closes connections as fast as it can must not make the gateway keep the
// connections of a whole minute.
func tcpConfig() tcp.Config {
	return tcp.Config{TimeWait: time.Second, FinWait2: 10 * time.Second, SynRetries: 3}
}

// linkName is the name of the interface to the guest.
const linkName = "guest"

// start attaches the device and starts the services.
func (g *Gateway) start() error {
	c := &g.config
	hostConf := &resolvConf{path: c.resolvConf}
	g.dns = newDNSForwarder(c, &g.tally, hostConf)
	ifc, err := g.stack.Attach(c.Device, stack.InterfaceConfig{Name: linkName, AcceptAny: true, NoIPv6: c.NoIPv6, NoDetection: true})
	if err != nil {
		return err
	}
	own := netip.PrefixFrom(c.Gateway, c.Prefix.Bits())
	if err := g.stack.AddAddress(linkName, own); err != nil {
		return err
	}
	if err := g.stack.AddAddress(linkName, netip.PrefixFrom(c.DNS, c.DNS.BitLen())); err != nil {
		return err
	}
	if err := g.startDNS(c.DNS); err != nil {
		return err
	}
	if err := g.startIPv6(ifc); err != nil {
		return err
	}
	if err := g.startDHCP(ifc.MTU(), hostConf.get().search); err != nil {
		return err
	}
	g.wg.Go(g.expireFlows)
	g.wg.Go(func() { g.watchLink(ifc) })
	for _, p := range [...]*pinger{g.pinger, g.pinger6} {
		if p.socket != nil {
			g.wg.Go(p.loop)
		}
	}
	for i := range g.published.udp {
		p := &g.published.udp[i]
		p.flows = newFlowTable(c.Limits.Flows, c.Limits.FlowIdle)
		g.wg.Go(func() { g.runPublishedUDP(*p) })
	}
	if err := g.startHanding(); err != nil {
		return err
	}
	for _, p := range g.published.tcp {
		g.wg.Go(func() { g.runPublishedTCP(p) })
	}
	return nil
}

// downBound is the maximum time that the gateway normally stays open after the guest's end of the link was closed. A
// guest that ends closes the link, and Close should follow soon.
const downBound = 5 * time.Second

// watchLink logs a warning if the gateway is still open downBound after its link went down.
func (g *Gateway) watchLink(ifc *stack.Interface) {
	select {
	case <-ifc.Down():
	case <-g.ctx.Done():
		return
	}
	timer := time.NewTimer(g.config.downBound)
	defer timer.Stop()
	select {
	case <-timer.C:
		g.config.Log.Warn("the guest is cut off: its end of the link is closed, and it has not ended")
	case <-g.ctx.Done():
	}
}

// startDNS starts the DNS forwarder on addr, an address of the gateway.
func (g *Gateway) startDNS(addr netip.Addr) error {
	at := netip.AddrPortFrom(addr, dnsPort)
	udp, err := g.stack.ListenUDP(at, stack.UDPOptions{})
	if err != nil {
		return err
	}
	g.sockets = append(g.sockets, udp)
	tcp, err := g.stack.ListenTCP(at, maxDNSConns, stack.TCPOptions{})
	if err != nil {
		return err
	}
	g.sockets = append(g.sockets, tcp)
	g.wg.Go(func() { g.dns.serveUDP(g.ctx, udp) })
	g.wg.Go(func() { g.dns.serveTCP(g.ctx, tcp) })
	return nil
}

// startDHCP starts the DHCP server on the guest's link.
func (g *Gateway) startDHCP(mtu int, search []string) error {
	server, err := newDHCPServer(&g.config, mtu, search)
	if err != nil {
		return err
	}
	everywhere := netip.AddrPortFrom(netip.IPv4Unspecified(), wire.DHCPv4ServerPort) // a socket at this address also receives broadcasts
	c, err := g.stack.ListenUDP(everywhere, stack.UDPOptions{Broadcast: true})
	if err != nil {
		return err
	}
	g.sockets = append(g.sockets, c)
	g.wg.Go(func() { g.runDHCP(c, server) })
	return nil
}

// now returns the time since the gateway was created. Flows and leases use it as their clock.
func (g *Gateway) now() time.Duration { return time.Since(g.epoch) }

// tables returns all flow tables.
func (g *Gateway) tables() []*flowTable {
	list := []*flowTable{g.flows}
	for _, p := range g.published.udp {
		if p.flows != nil {
			list = append(list, p.flows)
		}
	}
	return list
}

// expireFlows closes idle flows until the gateway is closed.
func (g *Gateway) expireFlows() {
	tick := time.NewTicker(g.config.Limits.FlowIdle / 2)
	defer tick.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range g.tables() {
			for _, f := range t.expire(g.now()) {
				g.tally.count(UDPExpired)
				f.close()
			}
		}
	}
}

// Close resets all connections on both sides, closes ports and the device, and waits for
// all goroutines of the gateway. Further calls return the same result.
func (g *Gateway) Close() error {
	g.once.Do(func() {
		g.cancel()
		g.published.close()
		if g.handing != nil {
			g.handing.conn.Close()
		}
		for _, p := range [...]*pinger{g.pinger, g.pinger6} {
			if p.socket != nil {
				p.socket.close()
			}
		}
		for _, t := range g.tables() {
			for _, f := range t.close() {
				f.close()
			}
		}
		for _, s := range g.sockets {
			s.Close()
		}
		g.err = g.stack.Close()
		g.wg.Wait()
		g.dns.wg.Wait()
	})
	return g.err
}

// Forwards returns the port forwards with the actual addresses and ports.
func (g *Gateway) Forwards() []Forward { return slices.Clone(g.config.Forwards) }

// Counters returns a snapshot of the gateway's counters.
func (g *Gateway) Counters() Counters { return g.tally.snapshot() }

// StackCounters returns a snapshot of the counters of the stack on the guest's link:
// packets, and the reasons why packets were dropped.
func (g *Gateway) StackCounters() stack.Counters { return g.stack.Counters() }
