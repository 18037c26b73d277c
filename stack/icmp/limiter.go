package icmp

import (
	"net/netip"
	"time"

	"loam/internal/siphash"
)

// Limiter limits the rate of ICMP errors that a host sends (RFC 1812 section 4.3.2.8). It has one limit in
// total and one for each destination, so that one destination cannot use up the errors of the others. The
// caller exempts packets to the host itself. The zero value is ready to use.
//
// The table of destinations has a fixed size. Destinations with the same index share a limit; in return, the
// table cannot grow during an attack. Key prevents attackers from choosing whose index they share.
type Limiter struct {
	Key siphash.Key

	all     Bucket
	targets [256]target
}

// The limits in total are Linux's icmp_msgs_per_sec and icmp_msgs_burst. The limits per destination are its
// ratelimit in net.ipv4.icmp and net.ipv6.icmp (Linux 6.18) and XRLIM_BURST_FACTOR. A price is the time after
// which one more error is allowed; a burst is the number of errors allowed at once.
const (
	allPrice, allBurst = time.Second / 1000, 50

	targetPrice4, targetPrice6 = time.Second, time.Second / 10
	targetBurst                = 6
)

// priceOf returns the price of an error to a destination.
func priceOf(dst netip.Addr) time.Duration {
	if dst.Is4() {
		return targetPrice4
	}
	return targetPrice6
}

// target is an entry of the table.
type target struct {
	addr netip.Addr // destination that took the entry when the bucket was full; others that share the entry use its bucket
	Bucket
}

// Allow reports whether an error may be sent to dst now. If so, it counts the error.
func (l *Limiter) Allow(now time.Duration, dst netip.Addr) bool {
	t := &l.targets[l.place(dst)]
	if t.addr != dst && (!t.begun || now-t.last >= targetBurst*priceOf(t.addr)) { // the bucket is full again, so the entry can be used for another destination
		*t = target{addr: dst}
	}
	return t.Take(now, priceOf(dst), targetBurst) && l.all.Take(now, allPrice, allBurst)
}

func (l *Limiter) place(a netip.Addr) uint8 {
	b := a.As16()
	return uint8(siphash.Sum(l.Key, b[:]))
}

// Bucket is a token bucket. Its content, credit, is measured in time: one token is the time in which the bucket gains one.
type Bucket struct {
	credit time.Duration
	last   time.Duration // time at which credit was last updated
	begun  bool          // false: the bucket is full and was never used
}

// Take takes one token from a bucket that gains one token per price and holds at most burst tokens. It
// returns false if there is none. now may be slightly earlier than in the previous call.
func (b *Bucket) Take(now, price time.Duration, burst int) bool {
	full := price * time.Duration(burst)
	now = max(now, b.last)
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
