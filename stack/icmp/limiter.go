package icmp

import (
	"net/netip"
	"time"
)

// Limiter bounds the ICMP errors that a host sends (RFC 1812 section 4.3.2.8):
// so many a second in all, and so many a second to each destination, so that
// one that provokes errors does not take them from the others. The zero value
// is ready. It belongs to one goroutine.
//
// The table of destinations has a fixed size. Two that meet in a place share an
// allowance: the price of not growing under an attack.
type Limiter struct {
	all     bucket
	targets [256]target
}

// Rates and bursts: Linux's icmp_msgs_per_sec and icmp_msgs_burst for all, and
// one a second, six at once, for each destination as its icmp_ratelimit.
const (
	allRate, allBurst       = 1000, 50
	targetRate, targetBurst = 1, 6
)

type target struct {
	addr netip.Addr
	bucket
}

// bucket is a token bucket. It counts in nanoseconds of credit.
type bucket struct {
	credit time.Duration
	last   time.Duration
	begun  bool
}

// take takes one token of a bucket that gains rate tokens a second and holds
// burst of them.
func (b *bucket) take(now time.Duration, rate, burst int) bool {
	price := time.Second / time.Duration(rate)
	most := price * time.Duration(burst)
	if !b.begun {
		b.credit, b.begun = most, true
	} else {
		b.credit = min(most, b.credit+now-b.last)
	}
	b.last = now
	if b.credit < price {
		return false
	}
	b.credit -= price
	return true
}

// Allow reports whether an error may go to dst now, and counts it if so.
func (l *Limiter) Allow(now time.Duration, dst netip.Addr) bool {
	t := &l.targets[place(dst)]
	if t.addr != dst && (!t.begun || now-t.last > targetBurst*time.Second/targetRate) {
		*t = target{addr: dst} // whoever was here before has its whole allowance again
	}
	return t.take(now, targetRate, targetBurst) && l.all.take(now, allRate, allBurst)
}

func place(a netip.Addr) uint8 {
	h := uint32(2166136261) // FNV-1a
	for _, b := range a.As16() {
		h = (h ^ uint32(b)) * 16777619
	}
	return uint8(h ^ h>>8 ^ h>>16 ^ h>>24)
}
