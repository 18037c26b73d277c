package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/stack"
	"loam/stack/ip"
)

// Options about the MTU of a path: IP_MTU_DISCOVER and IP_MTU of ip(7), and their like of
// ipv6(7). A TCP connection finds its path's out whatever it is told.

const (
	ipMTU         = 14
	ipv6MTU       = 24
	lastDiscovery = 5 // IP_PMTUDISC_OMIT
)

var (
	mtuDiscover  = optionName{syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER}
	mtuDiscover6 = optionName{syscall.IPPROTO_IPV6, ipv6MTUDiscover}
	pathMTU      = optionName{syscall.IPPROTO_IP, ipMTU}
	pathMTU6     = optionName{syscall.IPPROTO_IPV6, ipv6MTU}
	pathInfo6    = optionName{syscall.IPPROTO_IPV6, ipv6PathMTU}
)

// linuxDiscovery changes Linux's number of a stack.Discovery into the stack's, and the other
// way round: of Linux's, IP_PMTUDISC_DONT is the first.
func linuxDiscovery(n int) int {
	const dont, want = 0, 1
	switch n {
	case dont:
		return want
	case want:
		return dont
	}
	return n
}

func discovery[T any](field func(*T) *stack.Discovery) intOption[T] {
	return intOption[T]{
		func(o *T) int { return linuxDiscovery(int(*field(o))) },
		func(o *T, n int) Errno {
			if n < 0 || n > lastDiscovery {
				return syscall.EINVAL
			}
			*field(o) = stack.Discovery(linuxDiscovery(n))
			return 0
		},
	}
}

// setMaxPacket is IPV6_MTU: how long packets may be before they are cut up; 0: as the path has
// it. Errors: EINVAL for less than every link of IPv6 carries.
func (s *udpSocket) setMaxPacket(value []byte) Errno {
	n, errno := parseInt(value)
	switch {
	case errno != 0:
		return errno
	case n != 0 && n < ip.MinPathMTU6:
		return syscall.EINVAL
	}
	return s.setOptions(func(o *stack.UDPOptions) { o.MaxPacket6 = n })
}

// pathMTUValue is that of the path to a peer. Errors: ENOTCONN if there is none.
func pathMTUValue(net *stack.Stack, peer netip.AddrPort) ([]byte, Errno) {
	if !peer.IsValid() {
		return nil, syscall.ENOTCONN
	}
	n, err := net.PathMTU(peer.Addr())
	if err != nil {
		return nil, syscall.ENOTCONN
	}
	return intValue(n), 0
}

// pathInfoValue is that as IPV6_PATHMTU has it: struct ip6_mtuinfo, an address, which Linux
// leaves empty, and the MTU (RFC 3542 section 11.3). Errors: ENOTCONN.
func pathInfoValue(net *stack.Stack, peer netip.AddrPort) ([]byte, Errno) {
	mtu, errno := pathMTUValue(net, peer)
	if errno != 0 {
		return nil, errno
	}
	return append(make([]byte, sizeInet6), mtu...), 0
}

// recvPathMTU receives what IPV6_RECVPATHMTU asks for: a message of no bytes, from where the one
// was to go that was too long. As on Linux, it comes before all that has arrived, MSG_PEEK takes
// it, nothing polls for it, and sockets for ping get none.
func (s *udpSocket) recvPathMTU(c *datagramBox) (Received, bool) {
	if s.typ == syscall.SOCK_DGRAM && !s.isUDP() {
		return Received{}, false
	}
	told, ok := c.TakePathMTU()
	if !ok {
		return Received{}, false
	}
	from := s.inet(s.net, netip.AddrPortFrom(told.To, 0))
	data := binary.NativeEndian.AppendUint32(from.Append(nil), uint32(told.MTU))
	return Received{From: from, Control: []Control{{Level: pathInfo6.level, Type: pathInfo6.name, Data: data}}}, true
}
