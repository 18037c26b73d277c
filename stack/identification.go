package stack

import (
	"crypto/rand"
	"net/netip"
	"sync"

	"loam/stack/ip"
	"loam/wire"
)

// identifications are the stack's sources of IP identifications. Whoever sends
// between two hosts, a shard or a program's goroutine, has them from one source,
// since two would give the same numbers to different packets; senders to different
// hosts seldom meet at one.
//
// Packets that are whole and must not be cut up need none (RFC 6864 section 4.1):
// TCP asks only for those that routers may fragment.
type identifications [idSources]struct {
	mu     sync.Mutex // guards source
	source *ip.IDs
	_      [48]byte // a source to a cache line
}

// idSources is a power of two.
const idSources = 16

func (ids *identifications) init() {
	for i := range ids {
		var seed [32]byte
		rand.Read(seed[:]) // never fails
		ids[i].source = ip.NewIDs(seed)
	}
}

// nextID returns the identification of the next packet of IPv4 from src to dst.
func (s *Stack) nextID(src, dst netip.Addr, proto wire.Protocol) uint16 {
	return uint16(s.identify(src, dst, proto))
}

// identify returns an identification of 32 bits, for either version.
func (s *Stack) identify(src, dst netip.Addr, proto wire.Protocol) uint32 {
	from := &s.ids[dst.As16()[15]%idSources]
	from.mu.Lock()
	defer from.mu.Unlock()
	return from.source.Next(s.now(), src, dst, proto)
}
