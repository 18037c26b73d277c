package stack

import (
	"math/rand/v2"
	"net/netip"
	"sync"

	"loam/internal/siphash"
	"loam/stack/icmp"
	"loam/stack/tcp"
)

// errorLimit is the rate limit of ICMP errors. It is shared by all shards, since a
// destination can provoke errors on each of them. Its lock is held only for the check,
// with no other lock taken inside.
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

// allowError reports whether an error may be sent to dst now, and counts it against the
// limit. As on Linux, errors to this host's own addresses are not limited.
func (sh *shard) allowError(dst netip.Addr) bool {
	if _, ours := sh.tables.local[dst]; ours || dst.IsLoopback() {
		return true
	}
	return sh.stack.errors.allow(sh.now, dst)
}
