package inet

import (
	"math"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
)

// UDPLiteSocket is a UDP-Lite socket (udplite(7)): a UDP socket whose checksum may cover only a part of a datagram. It has
// neither UDP_SEGMENT nor UDP_GRO.
type UDPLiteSocket struct{ UDPSocket }

func newUDPLite(n *Network, domain int, owner uint32) *UDPLiteSocket {
	s := &UDPLiteSocket{UDPSocket{
		Base: NewBase(domain, linux.SOCK_DGRAM, linux.IPPROTO_UDPLITE),
		net:  n.stack,
	}}
	s.opts = s.begin(stack.UDPOptions{Owner: owner})
	s.open = func(local netip.AddrPort, o stack.UDPOptions) (datagramConn, error) {
		return n.stack.ListenUDPLite(local, o)
	}
	return s
}

// The options of udplite(7). As on Linux, they are also accepted at the level of UDP.
var coverageOptions = map[int]socket.IntOption[udpOpts]{
	linux.UDPLITE_SEND_CSCOV: {
		Get: func(o *udpOpts) int { return int(o.SendCoverage) },
		Set: func(o *udpOpts, n int) linux.Errno { o.SendCoverage = uint16(coverage(n)); return 0 },
	},
	linux.UDPLITE_RECV_CSCOV: {
		Get: func(o *udpOpts) int { return max(o.ReceiveCoverage, 0) },
		Set: func(o *udpOpts, n int) linux.Errno {
			if o.ReceiveCoverage = coverage(n); n == 0 {
				o.ReceiveCoverage = stack.FullCoverage
			}
			return 0
		},
	},
}

// coverage returns the coverage in bytes that a program has asked for: 0, or at least the header.
func coverage(n int) int {
	const header = 8
	if n == 0 {
		return 0
	}
	return min(max(n, header), math.MaxUint16)
}

// coverageOption returns one of coverageOptions. A UDP socket can read them, too, as on Linux.
func coverageOption(level, name int) (socket.IntOption[udpOpts], bool) {
	o, ok := coverageOptions[name]
	return o, ok && (level == linux.IPPROTO_UDPLITE || level == linux.IPPROTO_UDP)
}

// SetOption implements socket.Socket.
func (s *UDPLiteSocket) SetOption(level, name int, value []byte) linux.Errno {
	o, ok := coverageOption(level, name)
	if !ok {
		return s.UDPSocket.SetOption(level, name, value)
	}
	n, errno := socket.ParseInt(value)
	if errno == 0 {
		errno = s.setOptions(func(opts *udpOpts) { o.Set(opts, n) })
	}
	return errno
}
