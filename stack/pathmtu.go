package stack

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/stack/ip"
	"loam/stack/tcp"
)

// pathMTUs is what all shards have learnt of the paths to other hosts: a leaf with a
// lock of its own, since a path serves connections of every shard, and messages about
// it are rare. A generation number says that something has been learnt or forgotten
// since: a connection that is asked for output compares it with the one that it last
// saw, and only if they differ looks its path up again.
type pathMTUs struct {
	generation atomic.Uint32
	next       atomic.Int64 // when something is forgotten: a tcp.Time

	mu    sync.Mutex // guards known
	known ip.PathMTUs
}

func (p *pathMTUs) init() { p.next.Store(int64(tcp.Never)) }

// at is the generation at a time.
func (p *pathMTUs) at(now tcp.Time) uint32 {
	if int64(now) >= p.next.Load() {
		p.mu.Lock()
		p.known.Expire(now)
		p.changed()
		p.mu.Unlock()
	}
	return p.generation.Load()
}

// changed is called with the lock.
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

// learn takes in that a packet of length bytes was too long for a link of the path.
func (p *pathMTUs) learn(now tcp.Time, dst netip.Addr, mtu, length int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known.Learn(now, dst, mtu, length) {
		p.changed()
	}
}

// isNarrow reports whether routers on the path to dst must be allowed to
// fragment: see ip.PathMTU.
func (p *pathMTUs) isNarrow(now tcp.Time, dst netip.Addr) bool {
	learned, ok := p.lookup(now, dst)
	return ok && learned.Narrow
}

// heedPath follows what has been learnt of the path, or forgotten.
func (c *TCPConn) heedPath(sh *shard) {
	c.pathSeen = sh.stack.paths.at(sh.now)
	c.narrow = sh.stack.paths.isNarrow(sh.now, c.remote.Addr())
	c.machine.SetMSS(sh.now, sh.mss(c.device, c.machine.ID()))
}
