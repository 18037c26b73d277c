// Package siphash is SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). It
// computes 64 bits that cannot be predicted or influenced without the key, at the cost of an ordinary
// hash. The stack uses it for every value derived from addresses and ports that an outsider must not
// guess: TCP's initial sequence numbers (RFC 9293 section 3.4.1), ephemeral ports (RFC 6056), IP
// identifications (RFC 7739), SYN cookies.
//
// It does not replace a cryptographic digest: without a secret key it guarantees nothing.
package siphash

import (
	"encoding/binary"
	"math/bits"
)

// Key is the secret. It must come from a random source and must not leave the machine. Do not use one
// key for two purposes: each use could reveal values of the other.
type Key struct{ K0, K1 uint64 }

// NewKey reads a key from 16 random bytes, little-endian as in the paper.
func NewKey(b [16]byte) Key {
	return Key{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// Sum returns the hash of b under k. It does not retain b, so a buffer on the caller's stack does not
// escape to the heap.
//
// The four state words are variables and not a struct, so that they stay in registers. That halves the
// time.
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
	// The last word: the rest of b, with the low octet of the length on top.
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

// round is the function of the paper's figure 2.1. Two rounds process each word (the "2" of 2-4), and four rounds
// follow after the last word (the "4").
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
