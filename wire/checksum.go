package wire

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// The Internet checksum (RFC 1071): the ones' complement of the ones' complement sum of all 16-bit words. In
// this file, a sum is a partial sum: not complemented, in network byte order as a number. A header contains
// the complement of the sum.
//
// Two properties of the sum make it fast (RFC 1071 section 2). The order and width of the words do not
// matter, so eight bytes are added at a time with the carry fed back, and the result is folded to 16 bits at
// the end. The byte order of the words does not matter either, as long as the result is swapped once at the
// end. Words are therefore loaded in the byte order of the machine.
//
// Rejected: adding the two halves of each word to two wide sums. That needs no carry, but one more
// instruction for each word, and is slower by a third.

// Sum adds the bytes of b to the partial sum initial. b is taken to begin at an even offset. If its length is
// odd, a zero byte is added behind it. Of several pieces, only the last may therefore have an odd length.
func Sum(b []byte, initial uint16) uint16 {
	acc := uint64(bits.ReverseBytes16(initial))
	var c uint64
	if len(b) >= sumBlock {
		acc, b = sumBlocks(b, acc)
	}
	for len(b) >= 32 {
		p := (*[32]byte)(b)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[0:]), 0)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[8:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[16:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[24:]), c)
		acc += c // no carry: if c is 1, acc is at most 1<<64-2
		b = b[32:]
	}
	for len(b) >= 8 {
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(b), 0)
		acc += c
		b = b[8:]
	}
	var last uint64 // the last bytes of b, up to seven
	if len(b) >= 4 {
		last = uint64(binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		last += uint64(binary.LittleEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) > 0 {
		last += uint64(b[0])
	}
	acc, c = bits.Add64(acc, last, 0)
	return bits.ReverseBytes16(fold(acc + c))
}

// sumBlock is the number of bytes that sumBlocks adds at a time.
const sumBlock = 128

// sumBlocks adds the whole blocks at the front of b, little-endian, and returns the rest of b. Each block is
// summed in two independent carry chains, which a superscalar processor executes in parallel.
func sumBlocks(b []byte, acc uint64) (uint64, []byte) {
	var odd, c uint64
	for len(b) >= sumBlock {
		p := (*[sumBlock]byte)(b)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[0:]), 0)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[8:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[16:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[24:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[32:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[40:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[48:]), c)
		acc, c = bits.Add64(acc, binary.LittleEndian.Uint64(p[56:]), c)
		acc += c
		odd, c = bits.Add64(odd, binary.LittleEndian.Uint64(p[64:]), 0)
		odd, c = bits.Add64(odd, binary.LittleEndian.Uint64(p[72:]), c)
		odd, c = bits.Add64(odd, binary.LittleEndian.Uint64(p[80:]), c)
		odd, c = bits.Add64(odd, binary.LittleEndian.Uint64(p[88:]), c)
		odd, c = bits.Add64(odd, binary.LittleEndian.Uint64(p[96:]), c)
		odd, c = bits.Add64(odd, binary.LittleEndian.Uint64(p[104:]), c)
		odd, c = bits.Add64(odd, binary.LittleEndian.Uint64(p[112:]), c)
		odd, c = bits.Add64(odd, binary.LittleEndian.Uint64(p[120:]), c)
		odd += c
		b = b[sumBlock:]
	}
	acc, c = bits.Add64(acc, odd, 0)
	return acc + c, b
}

// fold adds the four 16-bit words of acc, including the carries.
func fold(acc uint64) uint16 {
	acc = acc>>32 + acc&0xffffffff
	acc = acc>>32 + acc&0xffffffff // acc now has 32 bits and a carry
	acc = acc>>16 + acc&0xffff
	return uint16(acc>>16 + acc)
}

// AddSums returns the sum of two partial sums.
func AddSums(a, b uint16) uint16 {
	s := uint32(a) + uint32(b)
	return uint16(s>>16 + s)
}

// PseudoSum returns the partial sum of the pseudo header that TCP, UDP and ICMPv6 checksums cover: RFC 9293
// section 3.1 for IPv4, RFC 8200 section 8.1 for IPv6. length is the size of the transport header and payload
// in bytes. Both addresses must be of the family of the IP header.
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
