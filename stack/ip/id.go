package ip

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"loam/internal/siphash"
	"loam/wire"
)

// Identifications of packets that may be fragmented. RFC 6864 requires that they do not repeat between the
// same hosts during the lifetime of fragments. RFC 7739 requires that no one can guess the next one or learn
// from it how much we send to other hosts.
//
// A table of counters is indexed by a hash of host pair and protocol; two pairs may share a counter. The
// identification is the counter plus an offset that depends only on the pair and a secret. The counter
// advances by one per packet, plus a random number of at most one per elapsed millisecond. As on Linux, this
// hides how many packets the sharers of a counter send. At low rates, a 16-bit identification repeats after
// two minutes on average, which is the lifetime of a packet in RFC 791.
//
// An unfragmented packet that must not be fragmented needs no identification. RFC 6864 section 4.1 requires
// receivers to ignore it, so 0 is sufficient.

// idPlaces is the number of counters of an IDs, a power of two. A stack has several IDs.
const idPlaces = 128

// IDs generates identifications.
type IDs struct {
	key     siphash.Key
	random  *rand.ChaCha8
	counter [idPlaces]idCounter
}

type idCounter struct {
	value uint32
	last  time.Duration // time of the last use of the counter
}

// NewIDs returns a generator. The seed must be secret and random.
func NewIDs(seed [32]byte) *IDs {
	g := &IDs{random: rand.NewChaCha8(seed)}
	g.key = siphash.Key{K0: g.random.Uint64(), K1: g.random.Uint64()}
	for i := range g.counter {
		g.counter[i].value = uint32(g.random.Uint64())
	}
	return g
}

// Next returns an identification for a packet from src to dst: all 32 bits for IPv6, the lower 16 for IPv4.
func (g *IDs) Next(now time.Duration, src, dst netip.Addr, proto wire.Protocol) uint32 {
	h := g.hash(src, dst, proto)
	c := &g.counter[h%idPlaces]
	c.value++
	if passed := (now - c.last) / time.Millisecond; passed > 0 {
		c.value += uint32(g.random.Uint64() % uint64(passed+1))
		c.last = now
	}
	return uint32(h>>32) + c.value
}

// hash returns the keyed hash of a host pair and protocol.
func (g *IDs) hash(src, dst netip.Addr, proto wire.Protocol) uint64 {
	var b [33]byte
	b[0] = uint8(proto)
	if src.Is4() {
		s, d := src.As4(), dst.As4()
		copy(b[1:], s[:])
		copy(b[5:], d[:])
		return siphash.Sum(g.key, b[:9])
	}
	s, d := src.As16(), dst.As16()
	copy(b[1:], s[:])
	copy(b[17:], d[:])
	return siphash.Sum(g.key, b[:])
}
