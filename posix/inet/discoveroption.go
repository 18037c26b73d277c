package inet

import (
	"encoding/binary"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
	"loam/stack/ip"
)

// Options about the path MTU: IP_MTU_DISCOVER and IP_MTU of ip(7), and their counterparts of ipv6(7). A
// TCP connection always discovers its path MTU, whatever the option says.

const (
	lastDiscovery = 5 // IP_PMTUDISC_OMIT, the largest value of IP_MTU_DISCOVER
)

var (
	pathMTU   = socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_MTU}
	pathMTU6  = socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MTU}
	pathInfo6 = socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_PATHMTU}
)

// linuxDiscovery converts between Linux's numbers of IP_PMTUDISC_* and stack.Discovery, in both
// directions. The two differ only in that the first two values are swapped.
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

func discovery[T any](field func(*T) *stack.Discovery) socket.IntOption[T] {
	return socket.IntOption[T]{
		Get: func(o *T) int { return linuxDiscovery(int(*field(o))) },
		Set: func(o *T, n int) linux.Errno {
			if n < 0 || n > lastDiscovery {
				return linux.EINVAL
			}
			*field(o) = stack.Discovery(linuxDiscovery(n))
			return 0
		},
	}
}

// setMaxPacket implements setting IPV6_MTU: longer packets are fragmented. 0 selects the path MTU. Errors: EINVAL for less
// than the minimum MTU of IPv6.
func (s *UDPSocket) setMaxPacket(value []byte) linux.Errno {
	n, errno := socket.ParseInt(value)
	switch {
	case errno != 0:
		return errno
	case n != 0 && n < ip.MinPathMTU6:
		return linux.EINVAL
	}
	return s.setOptions(func(o *stack.UDPOptions) { o.MaxPacket6 = n })
}

// pathMTUValue returns the path MTU to a peer. Errors: ENOTCONN without a peer.
func pathMTUValue(net *stack.Stack, peer netip.AddrPort) ([]byte, linux.Errno) {
	if !peer.IsValid() {
		return nil, linux.ENOTCONN
	}
	n, err := net.PathMTU(peer.Addr())
	if err != nil {
		return nil, linux.ENOTCONN
	}
	return socket.IntValue(n), 0
}

// pathInfoValue returns the value of IPV6_PATHMTU: a struct ip6_mtuinfo with the path MTU and an
// address, which is left empty as on Linux (RFC 3542 section 11.3). Errors: ENOTCONN.
func pathInfoValue(net *stack.Stack, peer netip.AddrPort) ([]byte, linux.Errno) {
	mtu, errno := pathMTUValue(net, peer)
	if errno != 0 {
		return nil, errno
	}
	return append(make([]byte, linux.SizeofSockaddrIn6), mtu...), 0
}

// recvPathMTU receives a notification of IPV6_RECVPATHMTU: a message without data whose source address
// is the destination of the packet that was too long. As on Linux, it precedes all queued datagrams, is
// consumed even with MSG_PEEK, does not make the socket readable for poll, and is not sent to ping
// sockets.
func (s *UDPSocket) recvPathMTU(c *datagramBox) (socket.Received, bool) {
	if s.Type == linux.SOCK_DGRAM && !s.hasPorts() {
		return socket.Received{}, false
	}
	report, ok := c.TakePathMTU()
	if !ok {
		return socket.Received{}, false
	}
	from := s.inet(s.net, netip.AddrPortFrom(report.To, 0))
	data := binary.NativeEndian.AppendUint32(from.Append(nil), uint32(report.MTU))
	return socket.Received{From: from, Control: []socket.Control{{Level: pathInfo6.Level, Type: pathInfo6.Name, Data: data}}}, true
}
