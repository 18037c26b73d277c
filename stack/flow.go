package stack

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// flow is the key of a connection: both ends, this one first. IPv4 addresses
// are in their IPv4-mapped form, so that one table serves both versions.
// Compact and without pointers: a map of these costs less than half of one of
// netip.AddrPort pairs.
type flow struct {
	local, remote         [16]byte
	localPort, remotePort uint16
}

func flowOf(local, remote netip.AddrPort) flow {
	return flow{local.Addr().As16(), remote.Addr().As16(), local.Port(), remote.Port()}
}

// shardOf picks the shard, out of n, that a flow belongs to. It is the same
// from both ends, so that the two ends of a loopback connection, and an ICMP
// error that quotes the packet it is about, end up in the same place. seed is
// chosen at random for each stack, so that nobody can aim at one shard.
func shardOf(src, dst netip.Addr, srcPort, dstPort uint16, seed uint64, n int) int {
	if n == 1 {
		return 0
	}
	h := seed ^ uint64(srcPort^dstPort)<<32 ^ uint64(srcPort)*uint64(dstPort)
	return int(mix(h^fold(src)^fold(dst), seed) % uint64(n))
}

func fold(a netip.Addr) uint64 {
	b := a.As16()
	return binary.LittleEndian.Uint64(b[:8]) ^ binary.LittleEndian.Uint64(b[8:])
}

// mix spreads h over 64 bits by one multiplication to 128 bits.
func mix(h, seed uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, seed|1)
	return hi ^ lo
}
