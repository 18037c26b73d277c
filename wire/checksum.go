package wire

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// The Internet checksum (RFC 1071) is the ones' complement of the ones' complement sum of all 16-bit words. In this
// file, a partial sum is that sum before the final complement; it is a number in network byte order. The checksum field
// of a header contains the complement of the sum.
//
// Two properties make the sum fast to compute (RFC 1071 section 2). First, the order and the width of the words do not
// matter: eight bytes are added at a time, with the carry fed back, and the result is folded to 16 bits at the end.
// Second, the byte order of the words does not matter if the result is swapped once at the end. So words are loaded in
// the byte order of the machine.
//
// Rejected: adding the two 32-bit halves of each word to two 64-bit sums. It needs no carry, but one more instruction
// for each word, and is slower by a third.

// Sum adds the bytes of b to a partial sum (the parameter initial) and returns the new partial sum. It treats the
// first byte as one at an even offset of the data. If the length of b is odd, a zero byte is added after it. So if
// data is summed in several pieces, only the last piece may have an odd length.
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

// fold adds the four 16-bit words of acc and the carries, and returns 16 bits.
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

// PseudoSum returns the partial sum of the pseudo header that checksums of TCP, UDP and ICMPv6 cover: RFC 9293 section
// 3.1 for IPv4, RFC 8200 section 8.1 for IPv6. length is the size of the transport header and the payload in bytes.
// Both addresses must have the IP version of the packet.
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
