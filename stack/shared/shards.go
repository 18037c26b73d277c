package shared

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// ShardOf returns which of n shards owns a flow. The result is the same from both ends.
// So the two ends of a loopback connection, and an ICMP error that quotes a packet of the
// flow, meet in one shard. seed is random for each stack, so that a remote host cannot
// direct all its load at one shard.
func ShardOf(src, dst netip.Addr, srcPort, dstPort uint16, seed uint64, n int) int {
	if n == 1 {
		return 0
	}
	h := seed ^ uint64(srcPort^dstPort)<<32 ^ uint64(srcPort)*uint64(dstPort)
	return int(Mix(h^Fold(src)^Fold(dst), seed) % uint64(n))
}

// Fold reduces an address to 64 bits, for hashing.
func Fold(a netip.Addr) uint64 {
	b := a.As16()
	return binary.LittleEndian.Uint64(b[:8]) ^ binary.LittleEndian.Uint64(b[8:])
}

// Mix hashes h to 64 bits with one 128-bit multiplication.
func Mix(h, seed uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, seed|1)
	return hi ^ lo
}
