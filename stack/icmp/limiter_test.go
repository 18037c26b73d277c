package icmp

import (
	"net/netip"
	"testing"
	"time"

	"loam/internal/siphash"
)

// burst requests n errors to dst at once and returns how many are allowed.
func burst(l *Limiter, now time.Duration, dst netip.Addr, n int) (allowed int) {
	for range n {
		if l.Allow(now, dst) {
			allowed++
		}
	}
	return allowed
}

func host(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }

// The limits for one destination have Linux's default values: one message each 1000 ms for IPv4
// (net.ipv4.icmp_ratelimit), and each 100 ms for IPv6 (net.ipv6.icmp.ratelimit).
func TestLimitOfOneDestination(t *testing.T) {
	for _, c := range []struct {
		dst, other netip.Addr
		perSecond  int
	}{{them, us, 1}, {them6, us6, 10}} {
		var l Limiter
		now, price := time.Hour, time.Second/time.Duration(c.perSecond)
		if n := burst(&l, now, c.dst, 100); n != targetBurst {
			t.Errorf("%v: %d errors at once, want %d", c.dst, n, targetBurst)
		}
		if n := burst(&l, now, c.other, 1); n != 1 {
			t.Error("one destination takes the allowance of another")
		}
		if n := burst(&l, now+3*price, c.dst, 100); n != 3 {
			t.Errorf("%v: %d errors after %v, want 3", c.dst, n, 3*price)
		}
		if n := burst(&l, now+time.Hour, c.dst, 100); n != targetBurst {
			t.Errorf("%v: %d errors after an hour, want %d: silence is not saved up", c.dst, n, targetBurst)
		}
		sent := 0
		for i := range 1000 {
			sent += burst(&l, now+2*time.Hour+time.Duration(i)*10*time.Millisecond, c.dst, 1)
		}
		if want := targetBurst + 10*c.perSecond - 1; sent < want || sent > want+1 {
			t.Errorf("%v: %d errors in ten seconds of constant provocation, want %d", c.dst, sent, want)
		}
	}
}

// Each shard passes its own reading of the clock, so times may decrease slightly.
func TestLimitOfClocksThatDiffer(t *testing.T) {
	var l Limiter
	burst(&l, time.Hour+time.Second, them, 5)
	if n := burst(&l, time.Hour, them, 100); n != 1 {
		t.Errorf("%d errors by a clock that is late, want the one that was left", n)
	}
	if n := burst(&l, time.Hour+2*time.Second, them, 100); n != 1 {
		t.Errorf("%d errors a second later, want 1", n)
	}
}

func TestLimitOfAll(t *testing.T) {
	var l Limiter
	sent := 0
	for i := range 1000 {
		sent += burst(&l, time.Hour, host(i), 1)
	}
	if sent > allBurst || sent < allBurst/2 {
		t.Errorf("%d errors at once to a thousand destinations, want %d at most", sent, allBurst)
	}
}

func TestDestinationsThatMeetShareAnAllowance(t *testing.T) {
	l := Limiter{Key: siphash.Key{K0: 1, K1: 2}}
	first, second := host(0), host(1)
	for i := 1; l.place(first) != l.place(second); i++ {
		second = host(i)
	}
	if n := burst(&l, time.Hour, first, 100) + burst(&l, time.Hour, second, 100); n != targetBurst {
		t.Errorf("%d errors to both, want %d", n, targetBurst)
	}
	if n := burst(&l, time.Hour+targetBurst*targetPrice4, second, 100); n != targetBurst {
		t.Errorf("%d errors to the second, once the first is forgotten, want %d", n, targetBurst)
	}
	if other := (Limiter{Key: siphash.Key{K0: 3}}); other.place(first) == other.place(second) {
		t.Error("they meet under another key too")
	}
}

func BenchmarkAllow(b *testing.B) {
	var l Limiter
	for b.Loop() {
		l.Allow(0, them)
	}
}
