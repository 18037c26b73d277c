package usernet

import (
	"net/netip"

	"loam/stack"
	"loam/stack/dhcp"
	"loam/wire"
)

// The DHCP service. A goroutine passes messages between a UDP socket of the gateway's stack and a dhcp.Server, which
// decides the replies but does no input and output itself.
//
// The pool of addresses starts at Config.Guest, so the first client gets that address. The pool has more addresses
// because a machine's firmware and its operating system usually send different client identifiers, and so count as two
// clients.

// poolSize is the number of leases, as in QEMU's user network.
const poolSize = 16

// newDHCPServer creates the server that decides the replies. search is the host's domain search list at the time the
// gateway is created. The name server that guests get is the gateway's DNS forwarder, not one of the host's servers.
func newDHCPServer(c *Config, mtu int, search []string) (*dhcp.Server, error) {
	s := dhcp.ServerConfig{
		Addr:          netip.PrefixFrom(c.Gateway, c.Prefix.Bits()),
		First:         c.Guest,
		Last:          c.lastLease(),
		Authoritative: true,
		Routers:       []netip.Addr{c.Gateway},
		DNS:           []netip.Addr{c.DNS},
		MTU:           mtu,
	}
	for _, domain := range search {
		name, err := wire.ParseDNSName(domain)
		if err != nil {
			continue // the name is invalid as a domain name, so the guest could not use it either
		}
		s.Search = append(s.Search, name)
	}
	if len(s.Search) > 0 {
		s.Domain = s.Search[0].String()
	}
	return dhcp.NewServer(s)
}

// lastLease returns the last address of the pool. The pool ends before the next address that the gateway uses, and at
// the end of the subnet.
func (c *Config) lastLease() netip.Addr {
	last := c.Guest
	for range poolSize - 1 {
		next := last.Next()
		if next == c.Gateway || next == c.DNS || !c.Prefix.Contains(next.Next()) {
			break
		}
		last = next
	}
	return last
}

// runDHCP answers requests until the socket is closed.
func (g *Gateway) runDHCP(c *stack.UDPConn, server *dhcp.Server) {
	buf := make([]byte, stack.MaxUDP)
	for {
		n, _, err := c.ReadDatagram(buf)
		if err != nil {
			return
		}
		g.tally.count(DHCPReceived)
		m, err := wire.ParseDHCPv4(buf[:n])
		if err != nil {
			g.tally.count(DHCPMalformed)
			continue
		}
		reply, ok := server.Handle(g.now(), &m)
		if !ok {
			g.tally.count(DHCPIgnored)
			continue
		}
		if !reply.MAC.IsZero() {
			// The client has no address yet, so ARP cannot resolve it. "If unicasting is
			// not possible, the message MAY be sent as an IP broadcast" (RFC 2131 section
			// 4.1).
			reply.Dst = netip.AddrPortFrom(limitedBroadcast, reply.Dst.Port())
		}
		if _, err := c.TryWriteTo(reply.Data, reply.Dst); err == nil {
			g.tally.count(DHCPSent)
		}
	}
}
