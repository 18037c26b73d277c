package stack

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// flow is the key of a connection: the local end and the remote end. IPv4 addresses are
// in IPv4-mapped form, so that one map serves both versions. The key has no pointers: a
// map with it takes less than half the memory of one with netip.AddrPort pairs.
type flow struct {
	local, remote         [16]byte
	localPort, remotePort uint16
}

// flowOf returns the key of a connection. Zones are not part of it.
func flowOf(local, remote netip.AddrPort) flow {
	return flow{local.Addr().As16(), remote.Addr().As16(), local.Port(), remote.Port()}
}

// shardOf returns which of n shards owns a flow. The result is the same from both ends.
// So the two ends of a loopback connection, and an ICMP error that quotes a packet of the
// flow, meet in one shard. seed is random for each stack, so that a remote host cannot
// direct all its load at one shard.
func shardOf(src, dst netip.Addr, srcPort, dstPort uint16, seed uint64, n int) int {
	if n == 1 {
		return 0
	}
	h := seed ^ uint64(srcPort^dstPort)<<32 ^ uint64(srcPort)*uint64(dstPort)
	return int(mix(h^fold(src)^fold(dst), seed) % uint64(n))
}

// fold reduces an address to 64 bits, for hashing.
func fold(a netip.Addr) uint64 {
	b := a.As16()
	return binary.LittleEndian.Uint64(b[:8]) ^ binary.LittleEndian.Uint64(b[8:])
}

// mix hashes h to 64 bits with one 128-bit multiplication.
func mix(h, seed uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, seed|1)
	return hi ^ lo
}
