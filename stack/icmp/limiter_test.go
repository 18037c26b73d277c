package icmp

import (
	"net/netip"
	"testing"
	"time"

	"loam/internal/siphash"
)

// burst asks for n errors to dst at once and returns how many are allowed.
func burst(l *Limiter, now time.Duration, dst netip.Addr, n int) (allowed int) {
	for range n {
		if l.Allow(now, dst) {
			allowed++
		}
	}
	return allowed
}

func host(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }

func TestLimitOfOneDestination(t *testing.T) {
	var l Limiter
	now := time.Hour
	if n := burst(&l, now, them, 100); n != targetBurst {
		t.Errorf("%d errors at once, want %d", n, targetBurst)
	}
	if n := burst(&l, now, us, 1); n != 1 {
		t.Error("one destination takes the allowance of another")
	}
	if n := burst(&l, now+3*time.Second, them, 100); n != 3*targetRate {
		t.Errorf("%d errors after three seconds, want 3", n)
	}
	if n := burst(&l, now+time.Hour, them, 100); n != targetBurst {
		t.Errorf("%d errors after an hour, want %d: silence is not saved up", n, targetBurst)
	}
	sent := 0
	for i := range 1000 {
		sent += burst(&l, now+2*time.Hour+time.Duration(i)*10*time.Millisecond, them, 1)
	}
	if want := targetBurst + 10*targetRate - 1; sent < want || sent > want+1 {
		t.Errorf("%d errors in ten seconds of constant provocation, want %d", sent, want)
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
	if n := burst(&l, time.Hour+refill, second, 100); n != targetBurst {
		t.Errorf("%d errors to the second, once the first is forgotten, want %d", n, targetBurst)
	}
	if other := (Limiter{Key: siphash.Key{K0: 3}}); other.place(first) == other.place(second) {
		t.Error("they meet under another key too")
	}
}

func TestLoopbackIsNotLimited(t *testing.T) {
	var l Limiter
	if n := burst(&l, 0, netip.MustParseAddr("127.0.0.1"), 1000); n != 1000 {
		t.Errorf("%d errors to ourselves, want all", n)
	}
}

func BenchmarkAllow(b *testing.B) {
	var l Limiter
	for b.Loop() {
		l.Allow(0, them)
	}
}
