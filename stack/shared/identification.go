package shared

import (
	"crypto/rand"
	"net/netip"
	"sync"
	"time"

	"loam/stack/ip"
	"loam/wire"
)

// Identifications generates IP identifications. All packets between two hosts take theirs
// from the same source, because two sources would give the same number to different
// packets. Shards and programs' goroutines that send to different hosts rarely contend
// for a source.
//
// An unfragmented packet with DF needs no identification (RFC 6864 section 4.1). TCP
// requests one only for packets that routers may fragment.
type Identifications [idSources]struct {
	mu     sync.Mutex // guards the field source
	source *ip.IDs
	_      [48]byte // padding: each element has a cache line of its own
}

// idSources is the number of sources, a power of two.
const idSources = 16

// Init prepares the zero Identifications for use.
func (ids *Identifications) Init() {
	for i := range ids {
		var seed [32]byte
		rand.Read(seed[:]) // Read of crypto/rand never fails
		ids[i].source = ip.NewIDs(seed)
	}
}

// Next returns a 32-bit identification, for either version of IP.
func (ids *Identifications) Next(now time.Duration, src, dst netip.Addr, proto wire.Protocol) uint32 {
	from := &ids[dst.As16()[15]%idSources]
	from.mu.Lock()
	defer from.mu.Unlock()
	return from.source.Next(now, src, dst, proto)
}
