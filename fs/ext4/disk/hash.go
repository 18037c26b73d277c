package disk

import "math/bits"

// Hashes of file names, the keys of indexed directories ("Hash Tree Directories").

// Versions of the hash, as stored in superblocks and index roots. Unsigned is added to the version
// if the characters of names are hashed as unsigned numbers.
const (
	HashLegacy = iota
	HashHalfMD4
	HashTEA

	hashUnsigned = 3
)

// KnownHash reports whether this package implements a version of the hash.
func KnownHash(version uint8) bool { return version <= HashTEA+hashUnsigned }

// Hash returns the hash of a name. The lowest bit of major is clear: in an index entry, a set bit
// means that names with this hash continue in the next leaf.
func (g *Geometry) Hash(version uint8, name string) (major, minor uint32) {
	unsigned := version >= hashUnsigned || g.HashUnsigned
	state := [4]uint32{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}
	if g.HashSeed != ([4]uint32{}) {
		state = g.HashSeed
	}
	switch version % hashUnsigned {
	case HashLegacy:
		major, minor = legacyHash(name, unsigned), 0
	case HashHalfMD4:
		for rest := name; len(rest) > 0; rest = rest[min(32, len(rest)):] {
			var in [8]uint32
			hashWords(rest, in[:], unsigned)
			halfMD4(&state, &in)
		}
		major, minor = state[1], state[2]
	default:
		for rest := name; len(rest) > 0; rest = rest[min(16, len(rest)):] {
			var in [4]uint32
			hashWords(rest, in[:], unsigned)
			tea(&state, &in)
		}
		major, minor = state[0], state[1]
	}
	major &^= 1
	if major == 0xfffffffe { // this value marks the end of a directory
		major -= 2
	}
	return major, minor
}

// character returns a byte of a name as a signed or unsigned number.
func character(c byte, unsigned bool) uint32 {
	if unsigned {
		return uint32(c)
	}
	return uint32(int32(int8(c)))
}

func legacyHash(name string, unsigned bool) uint32 {
	h0, h1 := uint32(0x12a3fe2d), uint32(0x37abe8f9)
	for i := range len(name) {
		h := h1 + (h0 ^ character(name[i], unsigned)*7152373)
		if h&0x80000000 != 0 {
			h -= 0x7fffffff
		}
		h0, h1 = h, h0
	}
	return h0 << 1
}

// hashWords packs a name into words of four bytes. The rest of the words is filled with its length.
func hashWords(name string, words []uint32, unsigned bool) {
	pad := uint32(len(name)) | uint32(len(name))<<8
	pad |= pad << 16
	for w := range words {
		words[w] = pad
		for i := 4 * w; i < min(4*w+4, len(name)); i++ {
			words[w] = character(name[i], unsigned) + words[w]<<8
		}
	}
}

// tea adds 16 rounds of the Tiny Encryption Algorithm to the state.
func tea(state *[4]uint32, in *[4]uint32) {
	b0, b1, sum := state[0], state[1], uint32(0)
	for range 16 {
		sum += 0x9e3779b9
		b0 += (b1<<4 + in[0]) ^ (b1 + sum) ^ (b1>>5 + in[1])
		b1 += (b0<<4 + in[2]) ^ (b0 + sum) ^ (b0>>5 + in[3])
	}
	state[0] += b0
	state[1] += b1
}

// The order of the words, the shifts, and the constants in the three rounds of half MD4.
var (
	md4Order = [3][8]uint8{{0, 1, 2, 3, 4, 5, 6, 7}, {1, 3, 5, 7, 0, 2, 4, 6}, {3, 7, 2, 6, 1, 5, 0, 4}}
	md4Shift = [3][4]int{{3, 7, 11, 19}, {3, 5, 9, 13}, {3, 9, 11, 15}}
	md4Add   = [3]uint32{0, 0x5a827999, 0x6ed9eba1}
)

// halfMD4 adds MD4 (RFC 1320) with half of its steps to the state.
func halfMD4(state *[4]uint32, in *[8]uint32) {
	a, b, c, d := state[0], state[1], state[2], state[3]
	for round := range 3 {
		for step, word := range md4Order[round] {
			var f uint32
			switch round {
			case 0:
				f = d ^ b&(c^d)
			case 1:
				f = b&c + (b^c)&d
			default:
				f = b ^ c ^ d
			}
			a = bits.RotateLeft32(a+f+in[word]+md4Add[round], md4Shift[round][step%4])
			a, b, c, d = d, a, b, c
		}
	}
	state[0] += a
	state[1] += b
	state[2] += c
	state[3] += d
}
