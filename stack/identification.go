package stack

import (
	"crypto/rand"
	"net/netip"
	"sync"

	"loam/stack/ip"
	"loam/wire"
)

// identifications generates IP identifications. All packets between two hosts take theirs
// from the same source, because two sources would give the same number to different
// packets. Shards and programs' goroutines that send to different hosts rarely contend
// for a source.
//
// An unfragmented packet with DF needs no identification (RFC 6864 section 4.1). TCP
// requests one only for packets that routers may fragment.
type identifications [idSources]struct {
	mu     sync.Mutex // guards source
	source *ip.IDs
	_      [48]byte // pads an element to a cache line
}

// idSources is the number of sources, a power of two.
const idSources = 16

func (ids *identifications) init() {
	for i := range ids {
		var seed [32]byte
		rand.Read(seed[:]) // never fails
		ids[i].source = ip.NewIDs(seed)
	}
}

// nextID returns the identification of the next IPv4 packet from src to dst.
func (s *Stack) nextID(src, dst netip.Addr, proto wire.Protocol) uint16 {
	return uint16(s.identify(src, dst, proto))
}

// identify returns a 32-bit identification, for either version of IP.
func (s *Stack) identify(src, dst netip.Addr, proto wire.Protocol) uint32 {
	from := &s.ids[dst.As16()[15]%idSources]
	from.mu.Lock()
	defer from.mu.Unlock()
	return from.source.Next(s.now(), src, dst, proto)
}
