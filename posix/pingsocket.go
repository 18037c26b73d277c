package posix

import (
	"net/netip"

	"loam/abi/linux"
	"loam/stack"
)

// pingSocket is an ICMP echo socket (icmp(7)): SOCK_DGRAM with the ICMP protocol of its family. Its
// port is the identifier of its echo requests. The program sends and receives ICMP messages without an
// IP header. It can send echo requests only.
type pingSocket struct{ udpSocket }

// pingProtocol returns the protocol number of a family's ping sockets.
func pingProtocol(domain int) int {
	if domain == linux.AF_INET6 {
		return linux.IPPROTO_ICMPV6
	}
	return linux.IPPROTO_ICMP
}

func (p *Process) newPing(domain int) *pingSocket {
	s := &pingSocket{udpSocket{
		inetBase: newBase(domain, linux.SOCK_DGRAM, pingProtocol(domain)),
		net:      p.net,
	}}
	s.opts = s.begin(stack.UDPOptions{V6Only: domain == linux.AF_INET6, ReuseAddr: true}) // as on Linux
	s.open = func(local netip.AddrPort, o stack.UDPOptions) (datagramConn, error) {
		return p.net.ListenPingBy(local, o)
	}
	return s
}
