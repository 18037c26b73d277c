package icmp

import (
	"net/netip"
	"time"

	"loam/internal/siphash"
)

// Limiter bounds the ICMP errors that a host sends (RFC 1812 section 4.3.2.8):
// so many a second in all, and so many a second to each destination, so that
// one that provokes errors does not take them from the others. What the host
// sends to itself is not limited. The zero value is ready; it belongs to one
// goroutine.
//
// The table of destinations has a fixed size. Two that meet in a place share an
// allowance, which is the price of not growing under an attack; Key keeps
// strangers from choosing whom they meet.
type Limiter struct {
	Key siphash.Key

	all     bucket
	targets [256]target
}

// Rates a second and bursts: Linux's icmp_msgs_per_sec and icmp_msgs_burst for
// all, and its icmp_ratelimit for each destination.
const (
	allRate, allBurst       = 1000, 50
	targetRate, targetBurst = 1, 6
)

// refill is how long a destination has to be silent to have its whole allowance
// again.
const refill = targetBurst * time.Second / targetRate

// target is a place of the table.
type target struct {
	addr netip.Addr // who used it last, but for those who met somebody there
	bucket
}

// Allow reports whether an error may go to dst now, and counts it if so.
func (l *Limiter) Allow(now time.Duration, dst netip.Addr) bool {
	if dst.IsLoopback() {
		return true
	}
	t := &l.targets[l.place(dst)]
	if t.addr != dst && (!t.begun || now-t.last >= refill) {
		*t = target{addr: dst}
	}
	return t.take(now, targetRate, targetBurst) && l.all.take(now, allRate, allBurst)
}

func (l *Limiter) place(a netip.Addr) uint8 {
	b := a.As16()
	return uint8(siphash.Sum(l.Key, b[:]))
}

// bucket is a token bucket. It counts in time: a token is the time in which one
// is gained.
type bucket struct {
	credit time.Duration
	last   time.Duration // when credit was brought up to date
	begun  bool          // not begun: full
}

// take takes one token of a bucket that gains rate tokens a second and holds
// burst of them.
func (b *bucket) take(now time.Duration, rate, burst int) bool {
	price := time.Second / time.Duration(rate)
	full := price * time.Duration(burst)
	if !b.begun {
		b.credit, b.begun = full, true
	} else {
		b.credit = min(full, b.credit+now-b.last)
	}
	b.last = now
	if b.credit < price {
		return false
	}
	b.credit -= price
	return true
}
