package inet

import (
	"net/netip"

	"loam/abi/linux"
	"loam/stack"
)

// PingSocket is an ICMP echo socket (icmp(7)): SOCK_DGRAM with the ICMP protocol of its family. Its
// port is the identifier of its echo requests. The program sends and receives ICMP messages without an
// IP header. It can send echo requests only.
type PingSocket struct{ UDPSocket }

// pingProtocol returns the protocol number of a family's ping sockets.
func pingProtocol(domain int) int {
	if domain == linux.AF_INET6 {
		return linux.IPPROTO_ICMPV6
	}
	return linux.IPPROTO_ICMP
}

func newPing(n *Network, domain int) *PingSocket {
	s := &PingSocket{UDPSocket{
		Base: NewBase(domain, linux.SOCK_DGRAM, pingProtocol(domain)),
		net:  n.stack,
	}}
	// As on Linux, SO_REUSEADDR is on by default, and an AF_INET6 ping socket uses IPv6 only.
	s.opts = s.begin(stack.UDPOptions{V6Only: domain == linux.AF_INET6, ReuseAddr: true})
	s.open = func(local netip.AddrPort, o stack.UDPOptions) (datagramConn, error) {
		return n.stack.ListenPingBy(local, o)
	}
	return s
}
