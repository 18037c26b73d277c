package stack

import (
	"math/rand/v2"
	"net/netip"
	"sync"

	"loam/internal/siphash"
	"loam/stack/icmp"
	"loam/stack/tcp"
)

// errorLimit is how many errors of ICMP the host may still send: a leaf with a lock of its own,
// since a destination provokes errors on every shard, and errors are rare or too many.
type errorLimit struct {
	mu      sync.Mutex // guards limiter
	limiter icmp.Limiter
}

func (e *errorLimit) init() { e.limiter.Key = siphash.Key{K0: rand.Uint64(), K1: rand.Uint64()} }

func (e *errorLimit) allow(now tcp.Time, dst netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.limiter.Allow(now, dst)
}

// allowError reports whether an error may go to dst now, and counts it if so. Programs of this
// host get all about what they send to each other, as on Linux.
func (sh *shard) allowError(dst netip.Addr) bool {
	if _, ours := sh.tables.local[dst]; ours || dst.IsLoopback() {
		return true
	}
	return sh.stack.errors.allow(sh.now, dst)
}
