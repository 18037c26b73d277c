package ip

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"loam/stack/timer"
)

// The table of redirects: RFC 1122 section 3.2.2.2, RFC 4861 sections 7.2.5 and 8.3.

var (
	gateway1 = addr("192.0.2.1")
	gateway2 = addr("192.0.2.2")
	gateway3 = addr("192.0.2.3")
	far1     = addr("198.51.100.1")
	far2     = addr("198.51.100.2")
)

type redirected map[netip.Addr]Detour

// wantDetours checks the detours, which are the destinations that ICMP redirects have given another router. They must have
// changed since the last check, and equal want.
func wantDetours(t *testing.T, sentence string, r *Redirects, want redirected) {
	t.Helper()
	got, changed := r.Detours()
	if !changed || !maps.Equal(got, want) {
		t.Errorf("%s: %v (changed: %v), want %v", sentence, got, changed, want)
	}
	if _, again := r.Detours(); again {
		t.Errorf("%s: it changed once more", sentence)
	}
}

func TestRedirectsAreLearntAndForgotten(t *testing.T) {
	var r Redirects
	now := time.Hour
	if _, changed := r.Detours(); changed || r.Deadline() != timer.Never {
		t.Error("something is known at the beginning")
	}
	r.Learn(now, far1, gateway1, gateway2)
	wantDetours(t, "learnt", &r, redirected{far1: {gateway1, gateway2}})
	r.Learn(now+time.Minute, far2, gateway1, gateway2)
	wantDetours(t, "and another", &r, redirected{far1: {gateway1, gateway2}, far2: {gateway1, gateway2}})
	if d := r.Deadline(); d != now+5*time.Minute {
		t.Errorf("the first ends at %v", d)
	}
	r.Expire(now + 5*time.Minute)
	wantDetours(t, "after five minutes", &r, redirected{far2: {gateway1, gateway2}})
	r.Learn(now+5*time.Minute, far2, gateway1, gateway2)
	if _, changed := r.Detours(); changed || r.Deadline() != now+10*time.Minute {
		t.Errorf("the same again changes nothing but its time: %v", r.Deadline())
	}
}

func TestRedirectsInARow(t *testing.T) {
	var r Redirects
	r.Learn(0, far1, gateway1, gateway2)
	r.Learn(0, far1, gateway2, gateway3)
	wantDetours(t, "the second router names a third", &r, redirected{far1: {gateway1, gateway3}})
	r.Learn(0, far1, gateway3, gateway1)
	wantDetours(t, "which names the first again", &r, redirected{})
	r.Learn(0, far1, gateway1, gateway2)
	r.Learn(0, far1, gateway3, gateway1)
	wantDetours(t, "the routes lead elsewhere now", &r, redirected{far1: {gateway3, gateway1}})
}

func TestRedirectsOfANeighbourThatFails(t *testing.T) {
	var r Redirects
	r.Learn(0, far1, gateway1, gateway2)
	r.Learn(0, far2, gateway1, far2)
	r.Learn(0, addr("198.51.100.3"), gateway1, gateway3)
	r.Detours()
	r.NotRouter(far2)
	r.NotRouter(gateway3)
	wantDetours(t, "a host leads to itself, and to nobody else", &r, redirected{far1: {gateway1, gateway2}, far2: {gateway1, far2}})
	if r.Failed(gateway3) || !r.Failed(gateway2) {
		t.Error("what leads by way of it is dropped")
	}
	wantDetours(t, "a router does not answer", &r, redirected{far2: {gateway1, far2}})
}

func TestRedirectsAreBounded(t *testing.T) {
	var r Redirects
	for i := range maxRedirects {
		if !r.Learn(0, netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}), gateway1, gateway2) {
			t.Fatalf("no room for number %d", i)
		}
	}
	r.Detours()
	if r.Learn(time.Minute, far1, gateway1, gateway2) {
		t.Error("there is room for more")
	}
	if _, changed := r.Detours(); changed {
		t.Error("what there is no room for changes something")
	}
	if !r.Learn(redirectLifetime, far1, gateway1, gateway2) {
		t.Error("there is none when they have ended")
	}
	wantDetours(t, "then", &r, redirected{far1: {gateway1, gateway2}})
}
