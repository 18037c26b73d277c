// Package siphash is SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast
// short-input PRF", 2012): 64 bits that nobody can predict or steer without the
// key, at the price of an ordinary hash. Whatever an outsider must not guess
// from addresses and ports is made with it: TCP's initial sequence numbers
// (RFC 9293 section 3.4.1), ephemeral ports (RFC 6056), IP identifications
// (RFC 7739), SYN cookies.
//
// It is no replacement for a cryptographic digest: without a secret key it
// promises nothing.
package siphash

import (
	"encoding/binary"
	"math/bits"
)

// Key is the secret. It has to come from a random source and to stay inside the
// machine; a key used for two purposes lets one of them leak into the other.
type Key struct{ K0, K1 uint64 }

// NewKey reads a key from 16 random bytes, little-endian as in the paper.
func NewKey(b [16]byte) Key {
	return Key{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// Sum is the hash of b under k. It does not keep b, so a buffer on the caller's
// stack stays there.
//
// The four words are variables and not a struct so that they stay in registers:
// that halves the time.
func Sum(k Key, b []byte) uint64 {
	v0 := k.K0 ^ 0x736f6d6570736575
	v1 := k.K1 ^ 0x646f72616e646f6d
	v2 := k.K0 ^ 0x6c7967656e657261
	v3 := k.K1 ^ 0x7465646279746573
	length := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0 ^= m
	}
	// The last word: what is left of b, and the length's low octet on top.
	last := length << 56
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0 ^= last

	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

// round is the paper's figure 2.1; a word goes in between two pairs of them (the
// "2" of 2-4), and four finish (the "4").
func round(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
