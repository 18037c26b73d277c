package autoconf

import (
	"math/rand/v2"
	"time"
)

// Times of router advertisements (RFC 4861 sections 6.2.1 and 10).
const (
	minAdvertiseInterval     = 200 * time.Second
	maxAdvertiseInterval     = 600 * time.Second
	initialAdvertiseInterval = 16 * time.Second
	initialAdvertisements    = 3
	minDelayBetween          = 3 * time.Second
	maxAnswerDelay           = 500 * time.Millisecond
)

// DefaultLifetime is the advertised lifetime of a default router in seconds: three times the longest
// advertisement interval.
const DefaultLifetime = 3 * int(maxAdvertiseInterval/time.Second)

// Router schedules the router advertisements of an interface to all nodes of a link: periodically, and soon
// after a solicitation, but never twice within three seconds.
type Router struct {
	random *rand.Rand
	sent   int           // number of advertisements sent, counted up to initialAdvertisements
	last   time.Duration // time of the last advertisement
	next   time.Duration // time of the next advertisement
}

// NewRouter returns a router whose first advertisement is due at the time now.
func NewRouter(now time.Duration, seed uint64) *Router {
	return &Router{random: rand.New(rand.NewPCG(seed, seed)), next: now}
}

// Deadline returns when Poll must be called.
func (r *Router) Deadline() time.Duration { return r.next }

// Solicited is called for each received solicitation (RFC 4861 section 6.2.6). The router answers with an advertisement to all nodes.
func (r *Router) Solicited(now time.Duration) {
	at := now + time.Duration(r.random.Int64N(int64(maxAnswerDelay)))
	if r.sent > 0 {
		at = max(at, r.last+minDelayBetween)
	}
	r.next = min(r.next, at)
}

// Poll reports whether an advertisement must be sent now. If so, it counts as sent.
func (r *Router) Poll(now time.Duration) bool {
	if now < r.next {
		return false
	}
	r.last, r.sent = now, min(r.sent+1, initialAdvertisements)
	wait := minAdvertiseInterval + time.Duration(r.random.Int64N(int64(maxAdvertiseInterval-minAdvertiseInterval)))
	if r.sent < initialAdvertisements {
		wait = initialAdvertiseInterval
	}
	r.next = now + wait
	return true
}
