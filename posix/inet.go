package posix

import (
	"math"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/socket"
)

// Common parts of IP sockets: creating them, and converting the stack's events and addresses to those
// of poll(2) and sockaddr.

// newInet makes an AF_INET or AF_INET6 socket.
func (p *Process) newInet(domain, typ, protocol int) (socket.Socket, Errno) {
	switch {
	case typ == linux.SOCK_STREAM && (protocol == 0 || protocol == linux.IPPROTO_TCP):
		return p.newTCP(domain), 0
	case typ == linux.SOCK_DGRAM && (protocol == 0 || protocol == linux.IPPROTO_UDP):
		return p.newUDP(domain), 0
	case typ == linux.SOCK_DGRAM && protocol == pingProtocol(domain):
		return p.newPing(domain), 0
	case typ == linux.SOCK_RAW && protocol > 0 && protocol <= math.MaxUint8:
		return p.newRaw(domain, protocol)
	case typ == linux.SOCK_STREAM || typ == linux.SOCK_DGRAM || typ == linux.SOCK_RAW:
		return nil, linux.EPROTONOSUPPORT
	}
	return nil, linux.ESOCKTNOSUPPORT
}

// inetBase is the part that AF_INET and AF_INET6 sockets share.
type inetBase struct{ socket.Base }

// newBase returns the common part of a new socket.
func newBase(domain, typ, protocol int) inetBase {
	return inetBase{socket.Base{Domain: domain, Type: typ, Protocol: protocol}}
}

// unspecified is the local address of an unbound AF_INET socket.
var unspecified = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// inetName checks the family of an address that a program passes to an AF_INET or AF_INET6 socket.
func (s *inetBase) inetName(a Address) (netip.AddrPort, Errno) {
	if int(a.Family) != s.Domain {
		return netip.AddrPort{}, linux.EAFNOSUPPORT
	}
	return a.IP, 0
}

// bindName is inetName for bind(2). An AF_INET socket also accepts AF_UNSPEC, as the unspecified
// address. Linux does so for old programs.
func (s *inetBase) bindName(a Address, v6Only bool) (netip.AddrPort, Errno) {
	switch {
	case a.Family == linux.AF_UNSPEC && !s.isInet6():
		return unspecified, 0
	case v6Only && a.IP.Addr().Is4In6():
		return netip.AddrPort{}, linux.EINVAL
	}
	return s.inetName(a)
}
