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

// Gateway is the network of one guest. Its methods may be called from several
// goroutines.
type Gateway struct {
	config Config // complete
	stack  *stack.Stack
	epoch  time.Time // flows count time from here
	tally  tally

	connections slots // TCP connections, both directions
	dials       slots // attempts to connect from the host
	flows       *flowTable
	pinger      *pinger // of IPv4
	pinger6     *pinger
	dns         *dnsForwarder
	published   *published
	handing     *handing    // nil: all connections are relayed
	sockets     []io.Closer // of the stack
	relays      sync.Map    // *relay: those that run
	hint        sync.Once   // see deny

	ctx    context.Context // ends with the gateway
	cancel context.CancelFunc
	once   sync.Once
	wg     sync.WaitGroup // every goroutine that the gateway starts; those of requests are the stack's
	err    error          // of closing
}

// New makes a gateway, which works from then on. All forwards have been bound
// when it returns. On an error it leaves nothing behind: a *ForwardError when
// the host does not give a port, else what is wrong with the configuration. The
// device is closed in any case, in the end by Close.
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
		connections: newSlots(c.Limits.Connections), dials: newSlots(c.Limits.Dials),
		flows: newFlowTable(c.Limits.Flows, c.Limits.FlowIdle),
	}
	if c.Program != nil {
		g.handing = newHanding(c.Program)
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	// A link of one queue is read by one goroutine, and the copying is done by relays:
	// a second shard would only divide what could be handled in one turn.
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

// closing closes what was given to a gateway that could not be made.
func closing(c Config, err error) error {
	if c.Device != nil {
		c.Device.Close()
	}
	if c.Program != nil {
		c.Program.Close()
	}
	return err
}

// tcpConfig has the guest's connections forgotten sooner than those of an
// Internet host: on a link inside one machine no segment is older than a second,
// and a guest that opens and closes connections as fast as it can should not
// make the gateway remember a minute's worth of them.
func tcpConfig() tcp.Config {
	return tcp.Config{TimeWait: time.Second, FinWait2: 10 * time.Second, SynRetries: 3}
}

// linkName is the interface to the guest.
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

// downBound is how long a guest that ends, and so closes its end of the link, may take until the
// gateway is closed, too.
const downBound = 5 * time.Second

// watchLink tells an operator that the guest goes on without the link.
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

// startDNS answers questions that come to an address of the gateway.
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

func (g *Gateway) startDHCP(mtu int, search []string) error {
	server, err := newDHCPServer(&g.config, mtu, search)
	if err != nil {
		return err
	}
	everywhere := netip.AddrPortFrom(netip.IPv4Unspecified(), wire.DHCPv4ServerPort) // hears broadcasts, too
	c, err := g.stack.ListenUDP(everywhere, stack.UDPOptions{Broadcast: true})
	if err != nil {
		return err
	}
	g.sockets = append(g.sockets, c)
	g.wg.Go(func() { g.runDHCP(c, server) })
	return nil
}

// now is the time of flows and leases: since the gateway was made.
func (g *Gateway) now() time.Duration { return time.Since(g.epoch) }

// tables lists all tables of flows.
func (g *Gateway) tables() []*flowTable {
	list := []*flowTable{g.flows}
	for _, p := range g.published.udp {
		if p.flows != nil {
			list = append(list, p.flows)
		}
	}
	return list
}

// expireFlows ends flows that have been idle, until the gateway is closed.
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

// Close ends everything: connections are reset on both sides, ports and the
// device are closed, and nothing of the gateway is left when it returns.
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

// Forwards lists the port forwards, with the addresses and ports that were
// chosen for what had been left open.
func (g *Gateway) Forwards() []Forward { return slices.Clone(g.config.Forwards) }

// Counters returns a snapshot of what the gateway has counted.
func (g *Gateway) Counters() Counters { return g.tally.snapshot() }

// StackCounters returns a snapshot of what the stack on the guest's link has
// counted: packets, and why they were dropped.
func (g *Gateway) StackCounters() stack.Counters { return g.stack.Counters() }
