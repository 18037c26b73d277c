package inet

import (
	"cmp"
	"math"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
	"loam/stack/shared"
)

// Common parts of IP sockets: creating them, and converting the stack's events and addresses to those
// of poll(2) and sockaddr.

// New makes an AF_INET or AF_INET6 socket. owner is the effective user ID of the program.
func New(n *Network, domain, typ, protocol int, owner uint32) (socket.Socket, linux.Errno) {
	switch {
	case typ == linux.SOCK_STREAM && (protocol == 0 || protocol == linux.IPPROTO_TCP):
		return newTCP(n, domain, owner), 0
	case typ == linux.SOCK_DGRAM && (protocol == 0 || protocol == linux.IPPROTO_UDP):
		return newUDP(n, domain, owner), 0
	case typ == linux.SOCK_DGRAM && protocol == linux.IPPROTO_UDPLITE:
		return newUDPLite(n, domain, owner), 0
	case typ == linux.SOCK_DGRAM && protocol == pingProtocol(domain):
		return newPing(n, domain), 0
	case typ == linux.SOCK_RAW && protocol > 0 && protocol <= math.MaxUint8:
		return newRaw(n, domain, protocol)
	case typ == linux.SOCK_STREAM || typ == linux.SOCK_DGRAM || typ == linux.SOCK_RAW:
		return nil, linux.EPROTONOSUPPORT
	}
	return nil, linux.ESOCKTNOSUPPORT
}

// Base is the common part of AF_INET and AF_INET6 sockets.
type Base struct{ socket.Base }

// NewBase returns the common part of a new socket.
func NewBase(domain, typ, protocol int) Base {
	return Base{socket.Base{Domain: domain, Type: typ, Protocol: protocol}}
}

// unspecified is the local address of an unbound AF_INET socket.
var unspecified = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// inetName returns the IP address and port in an address that a program has passed to a socket. Errors: EAFNOSUPPORT, EINVAL
// for an address of another family.
func (s *Base) inetName(a socket.Address) (netip.AddrPort, linux.Errno) {
	if int(a.Family) != s.Domain {
		return netip.AddrPort{}, linux.EAFNOSUPPORT
	}
	return a.IP, 0
}

// bindName returns the IP address and port that a program has passed to bind(2). An AF_INET socket accepts AF_UNSPEC with
// the unspecified address, as Linux does for old programs.
func (s *Base) bindName(a socket.Address, v6Only bool) (netip.AddrPort, linux.Errno) {
	switch {
	case a.Family == linux.AF_UNSPEC && !s.IsInet6():
		return unspecified, 0
	case v6Only && a.IP.Addr().Is4In6():
		return netip.AddrPort{}, linux.EINVAL
	}
	return s.inetName(a)
}

// BindUnprivileged binds a socket of any family for a caller without CAP_NET_BIND_SERVICE. Errors: EACCES for a TCP or UDP port
// below FirstPort, and those of Bind. Of these, EAFNOSUPPORT has priority over EACCES, and on an AF_INET socket EADDRNOTAVAIL, too.
func (n *Network) BindUnprivileged(by socket.Caller, s socket.Socket, a socket.Address) linux.Errno {
	port := a.IP.Port()
	if port == 0 || int64(port) >= n.FirstPort.Load() {
		return s.Bind(by, a)
	}
	switch s := s.(type) {
	case *TCPSocket:
		return s.refusal(s.net, a)
	case *UDPSocket:
		if s.hasPorts() {
			return s.refusal(s.net, a)
		}
	}
	return s.Bind(by, a)
}

// refusal returns the error of bind(2) for a privileged port.
func (s *Base) refusal(n *stack.Stack, a socket.Address) linux.Errno {
	local, errno := s.bindName(a, false)
	if errno != 0 || s.IsInet6() {
		return cmp.Or(errno, linux.EACCES)
	}
	b, err := n.BindTCP(netip.AddrPortFrom(local.Addr(), 0), stack.TCPOptions{})
	if err == nil {
		b.Close()
	}
	if file.ToErrno(err) == linux.EADDRNOTAVAIL {
		return linux.EADDRNOTAVAIL
	}
	return linux.EACCES
}

// Network is the state that all AF_INET and AF_INET6 sockets of a system share.
type Network struct {
	stack   *stack.Stack
	leaving leaving
	ports   ports
	unused  shared.Searches // settings for a network without a stack
	Settings
}

// Init sets the stack, before the first socket, and the defaults of the settings.
func (n *Network) Init(s *stack.Stack) {
	n.stack = s
	n.init()
}

// Unfinished reports whether closed connections still have data or a FIN to send.
func (n *Network) Unfinished() bool { return len(n.leaving.unfinished()) > 0 }
