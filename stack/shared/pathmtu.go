package shared

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/stack/ip"
)

// never is the time of the next expiry if no path MTU is known.
const never = time.Duration(1<<63 - 1)

// PathMTUs holds the path MTUs learned by all shards. It has its own lock, since a path
// serves connections of all shards, and changes are rare. generation changes whenever
// something is learned or expires. A connection that sends compares it with the
// generation it last saw, and looks its path up again only if they differ.
type PathMTUs struct {
	generation atomic.Uint32
	next       atomic.Int64 // time at which the next path MTU expires

	mu    sync.Mutex // guards the field known
	known ip.PathMTUs
}

// Init prepares the zero PathMTUs for use.
func (p *PathMTUs) Init() { p.next.Store(int64(never)) }

// At expires old entries and returns the generation at the time now.
func (p *PathMTUs) At(now time.Duration) uint32 {
	if int64(now) >= p.next.Load() {
		p.mu.Lock()
		p.known.Expire(now)
		p.changed()
		p.mu.Unlock()
	}
	return p.generation.Load()
}

// changed updates next and generation after a change of the entries. The caller holds mu.
func (p *PathMTUs) changed() {
	next := never
	if at, ok := p.known.Next(); ok {
		next = at
	}
	p.next.Store(int64(next))
	p.generation.Add(1)
}

// Any reports whether a path MTU has ever been learned.
func (p *PathMTUs) Any() bool { return p.generation.Load() != 0 }

// Lookup returns what is known about the path to dst.
func (p *PathMTUs) Lookup(now time.Duration, dst netip.Addr) (ip.PathMTU, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.Lookup(now, dst)
}

// Learn records that a packet of length bytes was too long for a link of the path. mtu is
// the MTU of that link, or 0 if the router did not report it.
func (p *PathMTUs) Learn(now time.Duration, dst netip.Addr, mtu, length int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known.Learn(now, dst, mtu, length) {
		p.changed()
	}
}

// IsNarrow reports whether routers on the path to dst must be allowed to fragment: see
// ip.PathMTU.
func (p *PathMTUs) IsNarrow(now time.Duration, dst netip.Addr) bool {
	learned, ok := p.Lookup(now, dst)
	return ok && learned.Narrow
}
