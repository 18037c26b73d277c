package posix

import (
	"math"
	"net/netip"
	"syscall"

	"loam/stack"
)

// What sockets of IP have in common: how events and addresses of the stack
// become those of poll(2) and sockaddr.

// newInet makes an AF_INET or AF_INET6 socket.
func (p *Process) newInet(domain, typ, protocol int) (socket, Errno) {
	switch {
	case typ == syscall.SOCK_STREAM && (protocol == 0 || protocol == syscall.IPPROTO_TCP):
		return p.newTCP(domain), 0
	case typ == syscall.SOCK_DGRAM && (protocol == 0 || protocol == syscall.IPPROTO_UDP):
		return p.newUDP(domain), 0
	case typ == syscall.SOCK_DGRAM && protocol == pingProtocol(domain):
		return p.newPing(domain), 0
	case typ == syscall.SOCK_RAW && protocol > 0 && protocol <= math.MaxUint8:
		return p.newRaw(domain, protocol)
	case typ == syscall.SOCK_STREAM || typ == syscall.SOCK_DGRAM || typ == syscall.SOCK_RAW:
		return nil, syscall.EPROTONOSUPPORT
	}
	return nil, syscall.ESOCKTNOSUPPORT
}

// pollEvents are events of the stack in the terms of poll(2).
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

// relay is the function that a socket of the stack tells its events to.
func (s *socketBase) relay(e stack.Events) { s.q.tell(pollEvents(e)) }

// unspecified is the name of a socket that is not bound.
var unspecified = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// inetName checks an address that a program gives an AF_INET or AF_INET6 socket.
func (s *socketBase) inetName(a Address) (netip.AddrPort, Errno) {
	if int(a.Family) != s.domain {
		return netip.AddrPort{}, syscall.EAFNOSUPPORT
	}
	return a.IP, 0
}

// bindName is inetName for bind(2), which takes AF_UNSPEC with the unspecified
// address, as Linux does for the sake of old programs; not so on AF_INET6.
func (s *socketBase) bindName(a Address, v6Only bool) (netip.AddrPort, Errno) {
	switch {
	case a.Family == syscall.AF_UNSPEC && !s.isInet6():
		return unspecified, 0
	case v6Only && a.IP.Addr().Is4In6():
		return netip.AddrPort{}, syscall.EINVAL
	}
	return s.inetName(a)
}
