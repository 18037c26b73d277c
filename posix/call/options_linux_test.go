package call

import (
	"testing"

	"loam/abi/linux"
)

// socketKinds opens a socket of each kind.
func (s *sequence) socketKinds() []opened {
	socket := func(family, kind, protocol uint64) uint64 {
		return s.open(linux.SYS_SOCKET, family, kind|linux.SOCK_NONBLOCK, protocol)
	}
	a, _ := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_SEQPACKET|linux.SOCK_NONBLOCK, 0, at(0))
	return []opened{
		{"TCP", socket(linux.AF_INET, linux.SOCK_STREAM, 0)},
		{"UDP", socket(linux.AF_INET, linux.SOCK_DGRAM, 0)},
		{"TCP6", socket(linux.AF_INET6, linux.SOCK_STREAM, 0)},
		{"UDP6", socket(linux.AF_INET6, linux.SOCK_DGRAM, 0)},
		{"Unix", socket(linux.AF_UNIX, linux.SOCK_STREAM, 0)},
		{"Unix pair", a},
	}
}

// A level that no protocol of the socket has is an error, whatever the name of the option.
func TestOptionLevelsAsOnLinux(t *testing.T) {
	s := &sequence{}
	const value, size = 0x100, 0x200
	for _, k := range s.socketKinds() {
		for _, level := range []uint64{
			linux.SOL_SOCKET, linux.IPPROTO_IP, linux.IPPROTO_TCP, linux.IPPROTO_UDP, linux.IPPROTO_IPV6, 2, 77, 255, 256, 263, 270, 9999, minus, 1 << 31,
		} {
			for _, name := range []uint64{150, 9999, minus, 1<<32 | 9999} {
				s.int32(size, 4)
				s.call(linux.SYS_GETSOCKOPT, k.fd, level, name, at(value), at(size))
				s.call(linux.SYS_SETSOCKOPT, k.fd, level, name, at(value), 4)
			}
		}
	}
	asOnLinux(t, s)
}

// struct linger: the first int says whether the socket lingers, the second how many seconds.
func TestLingerAsOnLinux(t *testing.T) {
	s := &sequence{}
	const value, size = 0x100, 0x200
	for _, k := range s.socketKinds() {
		for _, l := range [][2]uint32{{1, 7}, {0, 9}, {5, 0}, {1, 1<<31 - 1}, {1<<32 - 1, 3}} {
			s.int32(value, l[:]...)
			for _, n := range []uint64{8, 7, 4, 0, 100} {
				s.call(linux.SYS_SETSOCKOPT, k.fd, linux.SOL_SOCKET, linux.SO_LINGER, at(value), n)
			}
			for _, room := range []uint32{0, 4, 7, 8, 100} {
				s.int32(value, 55, 66)
				s.int32(size, room)
				s.call(linux.SYS_GETSOCKOPT, k.fd, linux.SOL_SOCKET, linux.SO_LINGER, at(value), at(size))
			}
		}
	}
	asOnLinux(t, s)
}

// Options with an int: its default, new values, and the sizes of the caller's buffer.
func TestIntOptionsAsOnLinux(t *testing.T) {
	s := &sequence{}
	const value, size = 0x100, 0x200
	options := []struct {
		level, name uint64
		values      []uint32
	}{
		{linux.SOL_SOCKET, linux.SO_REUSEADDR, []uint32{1, 7, 0}},
		{linux.SOL_SOCKET, linux.SO_REUSEPORT, []uint32{1, 0}},
		{linux.SOL_SOCKET, linux.SO_KEEPALIVE, []uint32{2, 0}},
		{linux.SOL_SOCKET, linux.SO_BROADCAST, []uint32{3, 0}},
		{linux.SOL_SOCKET, linux.SO_DONTROUTE, []uint32{4, 0}},
		{linux.SOL_SOCKET, linux.SO_OOBINLINE, []uint32{5, 0}},
		{linux.SOL_SOCKET, linux.SO_RXQ_OVFL, []uint32{6, 0}},
		{linux.SOL_SOCKET, linux.SO_PRIORITY, []uint32{1, 6, 0}},
		{linux.SOL_SOCKET, linux.SO_RCVLOWAT, []uint32{1, 0, 50}},
		{linux.SOL_SOCKET, linux.SO_TIMESTAMP, []uint32{1, 0}},
		{linux.SOL_SOCKET, linux.SO_ACCEPTCONN, []uint32{1}},
		{linux.SOL_SOCKET, linux.SO_ERROR, []uint32{1}},
		{linux.SOL_SOCKET, linux.SO_TYPE, []uint32{1}},
		{linux.SOL_SOCKET, linux.SO_PROTOCOL, []uint32{1}},
		{linux.IPPROTO_IP, linux.IP_TTL, []uint32{1, 255, 256, 0, 1<<32 - 1}},
		{linux.IPPROTO_IP, linux.IP_TOS, []uint32{0, 4, 8, 1 << 8, 0}},
		{linux.IPPROTO_IP, linux.IP_MULTICAST_TTL, []uint32{2, 255, 256, 1<<32 - 1}},
		{linux.IPPROTO_IP, linux.IP_MULTICAST_LOOP, []uint32{0, 2, 1}},
		{linux.IPPROTO_IP, linux.IP_MTU_DISCOVER, []uint32{0, 3, 5, 6, 1<<32 - 1}},
		{linux.IPPROTO_IP, linux.IP_PKTINFO, []uint32{1, 7, 0}},
		{linux.IPPROTO_IP, linux.IP_RECVTTL, []uint32{1, 7, 0}},
		{linux.IPPROTO_IP, linux.IP_RECVTOS, []uint32{7, 0}},
		{linux.IPPROTO_IP, linux.IP_RECVOPTS, []uint32{7, 0}},
		{linux.IPPROTO_IP, linux.IP_RETOPTS, []uint32{7, 0}},
		{linux.IPPROTO_IP, linux.IP_ORIGDSTADDR, []uint32{7, 0}},
		{linux.IPPROTO_IP, linux.IP_FREEBIND, []uint32{7, 0}},
		{linux.IPPROTO_IP, linux.IP_BIND_ADDRESS_NO_PORT, []uint32{7, 0}},
		{linux.IPPROTO_IP, linux.IP_MULTICAST_ALL, []uint32{0, 2, 1}},
		{linux.IPPROTO_IP, linux.IP_RECVERR, []uint32{2, 0}},
		{linux.IPPROTO_IPV6, linux.IPV6_V6ONLY, []uint32{1, 7, 0}},
		{linux.IPPROTO_IPV6, linux.IPV6_UNICAST_HOPS, []uint32{1, 255, 256, 1<<32 - 1, 1<<32 - 2}},
		{linux.IPPROTO_IPV6, linux.IPV6_RECVPKTINFO, []uint32{1, 7, 0}},
		{linux.IPPROTO_IPV6, linux.IPV6_TCLASS, []uint32{4, 252, 256, 1<<32 - 1}},
		{linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_HOPS, []uint32{2, 255, 256, 1<<32 - 1}},
		{linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_LOOP, []uint32{0, 2, 1}},
		{linux.IPPROTO_TCP, linux.TCP_NODELAY, []uint32{1, 7, 0}},
		{linux.IPPROTO_TCP, linux.TCP_KEEPIDLE, []uint32{1, 32767, 32768, 0}},
		{linux.IPPROTO_TCP, linux.TCP_KEEPINTVL, []uint32{1, 32767, 32768, 0}},
		{linux.IPPROTO_TCP, linux.TCP_KEEPCNT, []uint32{1, 127, 128, 0}},
		{linux.IPPROTO_TCP, linux.TCP_CORK, []uint32{1, 0}},
		{linux.IPPROTO_UDP, linux.UDP_CORK, []uint32{1, 7, 0}},
		{linux.IPPROTO_UDP, linux.UDP_SEGMENT, []uint32{1000, 65535, 65536, 0}},
	}
	for _, k := range s.socketKinds() {
		for _, o := range options {
			if o.level == linux.SOL_SOCKET && o.name == linux.SO_REUSEPORT && (k.kind == "Unix" || k.kind == "Unix pair") {
				continue // newer releases return EOPNOTSUPP
			}
			read := func(room uint32) {
				s.int32(value, 0xaaaaaaaa)
				s.int32(size, room)
				s.call(linux.SYS_GETSOCKOPT, k.fd, o.level, o.name, at(value), at(size))
			}
			read(4)
			for _, v := range o.values {
				s.int32(value, v)
				s.call(linux.SYS_SETSOCKOPT, k.fd, o.level, o.name, at(value), 4)
				read(4)
			}
			for _, room := range []uint32{0, 1, 2, 3, 8} {
				read(room)
			}
			s.int32(value, 1)
			s.call(linux.SYS_SETSOCKOPT, k.fd, o.level, o.name, at(value), 0)
			s.call(linux.SYS_SETSOCKOPT, k.fd, o.level, o.name, at(value), 3)
			if o.level == linux.SOL_SOCKET { // elsewhere, Linux returns the error of an unknown option first
				s.call(linux.SYS_SETSOCKOPT, k.fd, o.level, o.name, noAddress, 4)
			}
		}
	}
	asOnLinux(t, s)
}
