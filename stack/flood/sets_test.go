package flood

import (
	"net/netip"
	"sync/atomic"
	"testing"

	"loam/link"
)

// The flows to which the latest SYN cookies were sent are in all sets of flows. Older flows are removed from all of
// them.
func TestCookieFlows(t *testing.T) {
	var s Sets
	local := netip.MustParseAddrPort("10.0.0.1:80")
	remote := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 5000)
	}
	s.AddCookie(local, remote(0)) // has no effect, because there is no set yet
	newSet := func() *link.Flows {
		return link.NewFlows(make([]atomic.Uint32, link.FlowWords), link.FlowKeys{1, 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb})
	}
	a, b := newSet(), newSet()
	none := func(func(local, remote netip.AddrPort)) {}
	s.Join(a, none)
	const n = 3 * maxCookies / 2
	for i := range n {
		if i == n/2 {
			s.Join(b, none)
		}
		s.AddCookie(local, remote(i))
	}
	s.AddCookie(netip.MustParseAddrPort("[2001:db8::1]:80"), netip.MustParseAddrPort("[2001:db8::2]:5000"))
	for i := n - maxCookies; i < n; i++ {
		if f, _ := link.FlowOf(remote(i), local); !a.Has(f) || !b.Has(f) {
			t.Fatalf("cookie %d is missing", i)
		}
	}
	for _, f := range s.cookies.ring {
		a.Remove(f)
		b.Remove(f)
	}
	for i := range n {
		if f, _ := link.FlowOf(remote(i), local); a.Has(f) || b.Has(f) {
			t.Fatalf("cookie %d is left", i)
		}
	}
	s.Leave(a)
	if len(s.flows) != 1 || s.flows[0] != b {
		t.Error("the wrong set was forgotten")
	}
	if s.Leave(b); s.flows != nil || s.cookies.ring != nil {
		t.Error("without sets, the cookies are kept")
	}
}
