package socket

import (
	"net"
	"net/netip"
	"strconv"
)

// Addresses in the form "host:port", as in package net. Networks are "tcp" and "udp" for both versions of IP, and "tcp4",
// "tcp6", "udp4" and "udp6".

// CheckNetwork returns net.UnknownNetworkError unless the network is supported.
func CheckNetwork(network string) error {
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
		return nil
	}
	return net.UnknownNetworkError(network)
}

// CheckVersion returns ErrFamily if the IP version of an address does not match the network.
func CheckVersion(network string, addr netip.Addr) error {
	if v := network[len(network)-1]; v == '4' && !addr.Is4() || v == '6' && !addr.Is6() {
		return ErrFamily
	}
	return nil
}

// SplitPort splits "host:port" and returns the port as a number. A port may be a service
// name.
func SplitPort(network, address string) (string, uint16, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return host, uint16(n), nil
	}
	n, err := net.LookupPort(network, text)
	return host, uint16(n), err
}

// NetAddr returns an address as the type that package net uses for the network, which may also be an IP network ("ip4:1").
func NetAddr(network string, a netip.AddrPort) net.Addr {
	switch network[0] {
	case 'u':
		return net.UDPAddrFromAddrPort(a)
	case 'i':
		return &net.IPAddr{IP: a.Addr().AsSlice(), Zone: a.Addr().Zone()}
	}
	return net.TCPAddrFromAddrPort(a)
}

// Text is an address in the form given by the caller, for error messages. It implements net.Addr.
type Text string

func (a Text) Network() string { return "" }
func (a Text) String() string  { return string(a) }
