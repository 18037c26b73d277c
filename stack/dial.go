package stack

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"loam/stack/socket"
)

// Dial and Listen functions like those of package net. Addresses are "host:port". Networks are "tcp" and "udp" for both
// versions of IP, and "tcp4", "tcp6", "udp4" and "udp6".

// Dial connects to address and returns a TCP connection or a connected UDP socket.
func (s *Stack) Dial(network, address string) (net.Conn, error) {
	return s.DialContext(context.Background(), network, address)
}

// DialContext is Dial with a context that bounds the attempt. A host name is looked up
// with Resolver, and its addresses are tried in order.
func (s *Stack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	remotes, err := s.resolve(ctx, network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var first error
	for _, remote := range remotes {
		c, err := s.dialOne(ctx, network, remote)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = opError("dial", network, nil, socket.NetAddr(network, remote), err)
		}
	}
	return nil, first
}

// dialOne connects to one address. Errors are this package's, not yet wrapped in a net.OpError.
func (s *Stack) dialOne(ctx context.Context, network string, remote netip.AddrPort) (net.Conn, error) {
	if network[0] == 'u' {
		c, err := s.ListenUDP(netip.AddrPortFrom(anyAddr(remote.Addr()), 0), UDPOptions{Broadcast: true})
		if err != nil {
			return nil, err
		}
		if err := c.Connect(remote); err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	}
	c, err := s.DialTCP(netip.AddrPort{}, remote, TCPOptions{})
	if err != nil {
		return nil, err
	}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// connect waits for the handshake and aborts the connection if ctx ends first.
func (c *TCPConn) connect(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.Abort() })
	err := c.waitConnected()
	if !stop() {
		return context.Cause(ctx)
	}
	if err != nil {
		c.Close()
	}
	return err
}

// Listen listens for TCP connections on address. An empty host means all addresses, for
// "tcp" of both IP versions. Port 0 selects a free port.
func (s *Stack) Listen(network, address string) (net.Listener, error) {
	local, err := s.parseLocal(network, address, 't')
	if err == nil {
		var l *TCPListener
		if l, err = s.ListenTCP(local, defaultBacklog, TCPOptions{ReuseAddr: true, V6Only: network == "tcp6"}); err == nil {
			return l, nil
		}
	}
	return nil, opError("listen", network, nil, socket.Text(address), err)
}

// ListenPacket returns a UDP socket bound to address, with the same syntax as for Listen.
func (s *Stack) ListenPacket(network, address string) (net.PacketConn, error) {
	local, err := s.parseLocal(network, address, 'u')
	if err == nil {
		var c *UDPConn
		if c, err = s.ListenUDP(local, UDPOptions{Broadcast: true, V6Only: network == "udp6"}); err == nil {
			return c, nil
		}
	}
	return nil, opError("listen", network, nil, socket.Text(address), err)
}

// parseLocal parses an address to listen on. It fails unless the network's name begins with the letter
// kind: 't' for TCP, 'u' for UDP.
func (s *Stack) parseLocal(network, address string, kind byte) (netip.AddrPort, error) {
	if err := socket.CheckNetwork(network); err != nil || network[0] != kind {
		return netip.AddrPort{}, net.UnknownNetworkError(network)
	}
	host, port, err := socket.SplitPort(network, address)
	if err != nil || host == "" {
		return netip.AddrPortFrom(s.anywhere(network), port), err
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not an IP address: listen on one of this stack's, or on an empty host", host)
	}
	addr = addr.Unmap()
	return netip.AddrPortFrom(addr, port), socket.CheckVersion(network, addr)
}

// anywhere returns the unspecified address for a network.
func (s *Stack) anywhere(network string) netip.Addr {
	if network[len(network)-1] == '4' || s.config.NoIPv6 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// resolve returns the addresses to try for an address string, in order.
func (s *Stack) resolve(ctx context.Context, network, address string) ([]netip.AddrPort, error) {
	if err := socket.CheckNetwork(network); err != nil {
		return nil, err
	}
	host, port, err := socket.SplitPort(network, address)
	if err != nil {
		return nil, err
	}
	version := s.version(network)
	switch {
	case host == "" && network[len(network)-1] == '6':
		host = "::1"
	case host == "":
		host = "127.0.0.1"
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		return []netip.AddrPort{netip.AddrPortFrom(addr, port)}, socket.CheckVersion(network, addr)
	}
	addrs, err := s.Resolver().LookupNetIP(ctx, version, host)
	if err != nil {
		return nil, err
	}
	var list []netip.AddrPort
	for _, a := range addrs {
		list = append(list, netip.AddrPortFrom(a.Unmap(), port))
	}
	return list, nil
}

// version returns the address type to look up: "ip4", "ip6", or "ip" for both. IPv6
// addresses are looked up only if the stack has an IPv6 address to reach them from.
func (s *Stack) version(network string) string {
	switch v := network[len(network)-1]; {
	case v == '6':
		return "ip6"
	case v == '4' || !s.tables.Load().hasIPv6():
		return "ip4"
	}
	return "ip"
}

// SetDNS sets the servers for Resolver, in order. DHCP sets them too.
func (s *Stack) SetDNS(servers []netip.Addr) {
	s.dns.Store(&servers)
	s.notifyDNS()
}

// DNS returns the servers for Resolver: the servers of SetDNS, followed by the servers
// learned from DHCPv6 and router advertisements (RFC 8106 section 5.3.1).
func (s *Stack) DNS() []netip.Addr {
	var all []netip.Addr
	if p := s.dns.Load(); p != nil {
		all = slices.Clone(*p)
	}
	t := s.tables.Load()
	for _, ifc := range t.interfaces {
		for _, a := range t.learned[ifc.index].DNS {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}

// notifyDNS notifies Config.DNSChanged that the result of DNS may have changed.
func (s *Stack) notifyDNS() {
	if f := s.config.DNSChanged; f != nil {
		f()
	}
}

// Resolver returns a resolver that uses this stack and the servers of DNS.
func (s *Stack) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var err error = &net.DNSError{Err: "no DNS server is configured: call SetDNS or DHCP", IsNotFound: true}
		for _, server := range s.DNS() {
			var c net.Conn
			if c, err = s.dialOne(ctx, network, netip.AddrPortFrom(server, 53)); err == nil {
				return c, nil
			}
		}
		return nil, err
	}}
}
