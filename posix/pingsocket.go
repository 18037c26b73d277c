package posix

import (
	"net/netip"
	"syscall"

	"loam/stack"
)

// pingSocket is a socket for ICMP echo (icmp(7)): SOCK_DGRAM with the ICMP of its family.
// Its port is the identifier of its requests. A program sends and gets messages of ICMP,
// without an IP header; it sends echo requests and nothing else.
type pingSocket struct{ udpSocket }

// pingProtocol is the protocol of ping sockets of a family.
func pingProtocol(domain int) int {
	if domain == syscall.AF_INET6 {
		return syscall.IPPROTO_ICMPV6
	}
	return syscall.IPPROTO_ICMP
}

func (p *Process) newPing(domain int) *pingSocket {
	s := &pingSocket{udpSocket{
		socketBase: socketBase{domain: domain, typ: syscall.SOCK_DGRAM, pro: pingProtocol(domain)},
		net:        p.net,
	}}
	s.opts = s.begin(stack.UDPOptions{V6Only: domain == syscall.AF_INET6, ReuseAddr: true}) // as on Linux
	s.open = func(local netip.AddrPort, o stack.UDPOptions) (datagramConn, error) {
		return p.net.ListenPingBy(local, o)
	}
	return s
}
