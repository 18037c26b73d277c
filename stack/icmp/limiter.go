package icmp

import (
	"net/netip"
	"time"

	"loam/internal/siphash"
)

// Limiter bounds the ICMP errors that a host sends (RFC 1812 section 4.3.2.8):
// so many a second in all, and so many a second to each destination, so that
// one that provokes errors does not take them from the others. What the host
// sends to itself is not limited, which the caller sees to. The zero value is ready.
//
// The table of destinations has a fixed size. Two that meet in a place share an
// allowance, which is the price of not growing under an attack; Key keeps
// strangers from choosing whom they meet.
type Limiter struct {
	Key siphash.Key

	all     bucket
	targets [256]target
}

// Linux's icmp_msgs_per_sec and icmp_msgs_burst for all; for each destination its ratelimit of
// net.ipv4.icmp and net.ipv6.icmp, of Linux 6.18, and XRLIM_BURST_FACTOR. A price is the time
// after which there may be one error more, a burst how many there may be at once.
const (
	allPrice, allBurst = time.Second / 1000, 50

	targetPrice4, targetPrice6 = time.Second, time.Second / 10
	targetBurst                = 6
)

// priceOf is the price of an error to a destination.
func priceOf(dst netip.Addr) time.Duration {
	if dst.Is4() {
		return targetPrice4
	}
	return targetPrice6
}

// target is a place of the table.
type target struct {
	addr netip.Addr // who used it last, but for those who met somebody there
	bucket
}

// Allow reports whether an error may go to dst now, and counts it if so.
func (l *Limiter) Allow(now time.Duration, dst netip.Addr) bool {
	t := &l.targets[l.place(dst)]
	if t.addr != dst && (!t.begun || now-t.last >= targetBurst*priceOf(t.addr)) { // it has its whole allowance again
		*t = target{addr: dst}
	}
	return t.take(now, priceOf(dst), targetBurst) && l.all.take(now, allPrice, allBurst)
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

// take takes one token of a bucket that gains one in each price and holds burst of them. Who
// asks may have read the clock a little earlier than who asked before.
func (b *bucket) take(now, price time.Duration, burst int) bool {
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
