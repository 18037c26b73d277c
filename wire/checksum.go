package wire

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// The Internet checksum (RFC 1071): the ones' complement of the ones'
// complement sum of all 16-bit words. The sum does not care in which order the
// words are added, so eight bytes are added at a time with the carry fed back,
// and the result is folded to 16 bits at the end. A sum here is a partial sum,
// not yet complemented, in network byte order as a number; what goes into a
// header is its complement.

// Sum adds the bytes of b to the partial sum initial. b counts as if it began
// at an even offset and, if its length is odd, was followed by a zero byte; so
// only the last of several pieces may have an odd length.
func Sum(b []byte, initial uint16) uint16 {
	acc := uint64(initial)
	var carry uint64
	for len(b) >= 64 {
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b[0:8]), 0)
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b[8:16]), carry)
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b[16:24]), carry)
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b[24:32]), carry)
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b[32:40]), carry)
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b[40:48]), carry)
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b[48:56]), carry)
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b[56:64]), carry)
		acc += carry // cannot carry again: acc is below 1<<64-1 when carry is set
		b = b[64:]
	}
	for len(b) >= 8 {
		acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(b), 0)
		acc += carry
		b = b[8:]
	}
	var last [8]byte
	copy(last[:], b)
	acc, carry = bits.Add64(acc, binary.BigEndian.Uint64(last[:]), 0)
	acc += carry
	return fold(acc)
}

func fold(acc uint64) uint16 {
	acc = acc>>32 + acc&0xffffffff
	acc = acc>>32 + acc&0xffffffff
	s := uint32(acc>>16) + uint32(acc&0xffff)
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}

// AddSums adds two partial sums.
func AddSums(a, b uint16) uint16 {
	s := uint32(a) + uint32(b)
	return uint16(s>>16 + s)
}

// PseudoSum is the partial sum of the pseudo header that TCP, UDP and ICMPv6
// checksums cover: RFC 9293 section 3.1 for IPv4, RFC 8200 section 8.1 for
// IPv6. length is that of the transport header and payload, in bytes.
func PseudoSum(proto Protocol, src, dst netip.Addr, length int) uint16 {
	acc := uint64(proto) + uint64(length)
	if src.Is4() {
		s, d := src.As4(), dst.As4()
		acc += uint64(binary.BigEndian.Uint32(s[:])) + uint64(binary.BigEndian.Uint32(d[:]))
		return fold(acc)
	}
	s, d := src.As16(), dst.As16()
	return Sum(d[:], Sum(s[:], fold(acc)))
}
