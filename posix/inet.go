package posix

import (
	"math"
	"net/netip"

	"loam/abi/linux"
	"loam/stack"
)

// Common parts of IP sockets: creating them, and converting the stack's events and addresses to those
// of poll(2) and sockaddr.

// newInet makes an AF_INET or AF_INET6 socket.
func (p *Process) newInet(domain, typ, protocol int) (socket, Errno) {
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

// pollEvents converts events of the stack to events of poll(2).
func pollEvents(e stack.Events) Events {
	var p Events
	if e&stack.Readable != 0 {
		p |= PollIn
	}
	if e&stack.Urgent != 0 {
		p |= PollPri
	}
	if e&stack.Writable != 0 {
		p |= PollOut
	}
	if e&stack.ReadHangup != 0 {
		p |= PollRdHup
	}
	if e&stack.Hangup != 0 {
		p |= PollHup
	}
	if e&stack.Error != 0 {
		p |= PollErr
	}
	return p
}

// relay forwards events of the stack's socket to the wait queue.
func (s *socketBase) relay(e stack.Events) { s.q.Notify(pollEvents(e)) }

// unspecified is the local address of an unbound AF_INET socket.
var unspecified = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// inetName checks the family of an address that a program passes to an AF_INET or AF_INET6 socket.
func (s *socketBase) inetName(a Address) (netip.AddrPort, Errno) {
	if int(a.Family) != s.domain {
		return netip.AddrPort{}, linux.EAFNOSUPPORT
	}
	return a.IP, 0
}

// bindName is inetName for bind(2). An AF_INET socket also accepts AF_UNSPEC, as the unspecified
// address. Linux does so for old programs.
func (s *socketBase) bindName(a Address, v6Only bool) (netip.AddrPort, Errno) {
	switch {
	case a.Family == linux.AF_UNSPEC && !s.isInet6():
		return unspecified, 0
	case v6Only && a.IP.Addr().Is4In6():
		return netip.AddrPort{}, linux.EINVAL
	}
	return s.inetName(a)
}
