package shared

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"loam/stack/icmp"
	"loam/wire"
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

// ShardOfPacket returns the shard for a packet, and reads only as much of the payload as needed. For a fragment, payload is nil:
// the fragments of a datagram meet in the shard selected by their addresses alone, and the datagram is assigned again after
// reassembly. An ICMP error goes to the shard of the flow of the packet it quotes.
func ShardOfPacket(src, dst netip.Addr, proto wire.Protocol, payload []byte, seed uint64, n int) int {
	if n == 1 {
		return 0
	}
	var quoted []byte
	switch proto {
	case wire.ProtoTCP, wire.ProtoUDP, wire.ProtoUDPLite:
		if len(payload) >= 4 {
			return ShardOf(src, dst, binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:]), seed, n)
		}
	case wire.ProtoICMPv6:
		if h, rest, err := wire.ParseICMPv6(payload); err == nil && h.IsError() {
			quoted = rest
		}
	case wire.ProtoICMP:
		if h, rest, err := wire.ParseICMPv4(payload); err == nil && h.IsError() {
			quoted = rest
		}
	}
	if q, ok := icmp.ParseQuote(quoted); ok {
		return ShardOf(q.Src, q.Dst, q.SrcPort, q.DstPort, seed, n)
	}
	return ShardOf(src, dst, 0, 0, seed, n)
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
