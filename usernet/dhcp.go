package usernet

import (
	"net/netip"

	"loam/stack"
	"loam/stack/dhcp"
	"loam/wire"
)

// The DHCP service: a socket of the gateway's stack around the machine of
// package dhcp.
//
// The pool begins with Config.Guest, which the first to ask is given, and has a
// few addresses more: firmware and the system that it boots name themselves
// differently as a rule, and are two clients then.

// poolSize is what QEMU's user network has, too.
const poolSize = 16

// newDHCPServer makes the machine; search is the host's search list as it is
// when the gateway is made. (Its name servers do not show here: the guest asks
// the forwarder.)
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
			continue // it would be no use to the guest either
		}
		s.Search = append(s.Search, name)
	}
	if len(s.Search) > 0 {
		s.Domain = s.Search[0].String()
	}
	return dhcp.NewServer(s)
}

// lastLease is the last address of the pool: up to the next address that is
// somebody's, or the end of the subnet.
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

// runDHCP answers what arrives until the socket is closed.
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
			// The client does not have the address yet, so that it cannot be asked
			// for its MAC. "If unicasting is not possible, the message MAY be sent
			// as an IP broadcast" (RFC 2131 section 4.1).
			reply.Dst = netip.AddrPortFrom(limitedBroadcast, reply.Dst.Port())
		}
		if _, err := c.TryWriteTo(reply.Data, reply.Dst); err == nil {
			g.tally.count(DHCPSent)
		}
	}
}
