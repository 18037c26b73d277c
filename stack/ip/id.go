package ip

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"loam/internal/siphash"
	"loam/wire"
)

// Identifications of packets that may be fragmented. RFC 6864 wants them not to
// repeat between the same hosts for as long as fragments live; RFC 7739 wants
// nobody to learn from them what we send to others, or to guess the next.
//
// So there is a counter for each pair of hosts and protocol, in as many places as
// a table has (two pairs may share one), and what is sent is the counter plus an
// offset that only the pair and a secret determine. A counter advances by one a
// packet and besides by a random number of up to one a millisecond that has
// passed, so that sharing a counter with somebody does not tell how much they
// were sent (as Linux does it): at low rates an identification of 16 bits comes
// again after two minutes on average, which is the time RFC 791 gives a packet.
//
// A packet that is whole and must not be fragmented needs none: RFC 6864 section
// 4.1 has it ignored, and 0 is as good as any.

// idPlaces is the number of counters, a power of two. A stack has several tables.
const idPlaces = 128

// IDs makes identifications.
type IDs struct {
	key     siphash.Key
	random  *rand.ChaCha8
	counter [idPlaces]idCounter
}

type idCounter struct {
	value uint32
	last  time.Duration // when it was used
}

// NewIDs returns a source of identifications. The seed is secret and random.
func NewIDs(seed [32]byte) *IDs {
	g := &IDs{random: rand.NewChaCha8(seed)}
	g.key = siphash.Key{K0: g.random.Uint64(), K1: g.random.Uint64()}
	for i := range g.counter {
		g.counter[i].value = uint32(g.random.Uint64())
	}
	return g
}

// Next returns an identification for a packet from src to dst: all 32 bits for
// IPv6, the lower 16 for IPv4.
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
