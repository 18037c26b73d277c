package shared

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"loam/internal/siphash"
	"loam/stack/icmp"
)

// ErrorLimit is the rate limit of ICMP errors. It is shared by all shards, since a
// destination can provoke errors on each of them.
type ErrorLimit struct {
	mu      sync.Mutex // guards the field limiter
	limiter icmp.Limiter
}

// Init prepares the zero ErrorLimit for use.
func (e *ErrorLimit) Init() { e.limiter.Key = siphash.Key{K0: rand.Uint64(), K1: rand.Uint64()} }

// Allow reports whether an error may be sent to dst now, and counts it against the limit.
func (e *ErrorLimit) Allow(now time.Duration, dst netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.limiter.Allow(now, dst)
}
