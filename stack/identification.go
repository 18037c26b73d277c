package stack

import (
	"crypto/rand"
	"net/netip"
	"sync"

	"loam/stack/ip"
	"loam/wire"
)

// identifications is the stack's source of IP identifications. There is one for
// all shards and programs, since two would give the same numbers to different
// packets between the same hosts.
type identifications struct {
	mu     sync.Mutex
	source *ip.IDs
}

func newIdentifications() identifications {
	var seed [32]byte
	rand.Read(seed[:]) // never fails
	return identifications{source: ip.NewIDs(seed)}
}

// nextID returns the identification of the next packet from src to dst.
func (s *Stack) nextID(src, dst netip.Addr, proto wire.Protocol) uint16 {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	return uint16(s.ids.source.Next(s.now(), src, dst, proto))
}
