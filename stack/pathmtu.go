package stack

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/stack/ip"
	"loam/stack/tcp"
)

// pathMTUs holds the path MTUs learned by all shards. It has its own lock, since a path
// serves connections of all shards, and changes are rare. generation changes whenever
// something is learned or expires. A connection that sends compares it with the
// generation it last saw, and looks its path up again only if they differ.
type pathMTUs struct {
	generation atomic.Uint32
	next       atomic.Int64 // tcp.Time of the next expiry

	mu    sync.Mutex // guards known
	known ip.PathMTUs
}

func (p *pathMTUs) init() { p.next.Store(int64(tcp.Never)) }

// at expires old entries and returns the generation at time now.
func (p *pathMTUs) at(now tcp.Time) uint32 {
	if int64(now) >= p.next.Load() {
		p.mu.Lock()
		p.known.Expire(now)
		p.changed()
		p.mu.Unlock()
	}
	return p.generation.Load()
}

// changed updates next and generation after a change of the entries. The caller holds mu.
func (p *pathMTUs) changed() {
	next := tcp.Never
	if at, ok := p.known.Next(); ok {
		next = at
	}
	p.next.Store(int64(next))
	p.generation.Add(1)
}

func (p *pathMTUs) lookup(now tcp.Time, dst netip.Addr) (ip.PathMTU, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.Lookup(now, dst)
}

// learn records that a packet of length bytes was too long for a link of the path. mtu is
// the MTU of that link, or 0 if the router did not report it.
func (p *pathMTUs) learn(now tcp.Time, dst netip.Addr, mtu, length int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known.Learn(now, dst, mtu, length) {
		p.changed()
	}
}

// isNarrow reports whether routers on the path to dst must be allowed to fragment: see
// ip.PathMTU.
func (p *pathMTUs) isNarrow(now tcp.Time, dst netip.Addr) bool {
	learned, ok := p.lookup(now, dst)
	return ok && learned.Narrow
}

// heedPath applies the current path MTU to the connection.
func (c *TCPConn) heedPath(sh *shard) {
	c.pathSeen = sh.stack.paths.at(sh.now)
	c.narrow = sh.stack.paths.isNarrow(sh.now, c.remote.Addr())
	c.machine.SetMSS(sh.now, sh.mss(c.device, c.machine.ID()))
}
