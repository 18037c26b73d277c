package ip

import (
	"net/netip"
	"strings"
	"testing"
)

func TestSource(t *testing.T) {
	for _, test := range []struct{ sentence, own, dst, want string }{
		{"the only one", "192.0.2.1/24", "198.51.100.1", "192.0.2.1"},
		{"its own subnet", "192.0.2.1/24 198.51.100.1/24", "198.51.100.9", "198.51.100.1"},
		{"the longest common prefix", "10.0.0.1/16 10.1.0.1/16", "10.1.200.1", "10.1.0.1"},
		{"the first of equals", "192.0.2.1/24 192.0.2.2/24", "192.0.2.9", "192.0.2.1"},
		{"the same address", "192.0.2.1/24 192.0.2.2/24", "192.0.2.2", "192.0.2.2"},
		{"the same address, named first", "192.0.2.2/24 192.0.2.1/24", "192.0.2.2", "192.0.2.2"},
		{"a prefix counts no further than its length", "10.0.0.1/8 10.0.1.1/24", "10.0.2.1", "10.0.1.1"},
		{"loopback is for loopback", "192.0.2.1/24 127.0.0.1/8", "127.0.0.5", "127.0.0.1"},
		{"and for nothing else", "127.0.0.1/8", "192.0.2.1", ""},
		{"and gives way", "127.0.0.1/8 192.0.2.1/24", "126.0.0.1", "192.0.2.1"},
		{"link-local is for the link", "192.0.2.1/24 169.254.3.4/16", "169.254.9.9", "169.254.3.4"},
		{"link-local does not reach further", "169.254.3.4/16 1.1.1.1/24", "169.1.1.1", "1.1.1.1"},
		{"unless there is nothing else", "169.254.3.4/16", "192.0.2.1", "169.254.3.4"},
		{"from a loopback destination's view", "192.0.2.1/24", "127.0.0.1", "192.0.2.1"},
		{"no address", "", "192.0.2.1", ""},
		{"the other family", "2001:db8::1/64", "192.0.2.1", ""},
		{"IPv6", "fe80::1/64 2001:db8::1/64 2001:db8:1::1/64", "2001:db8:1::9", "2001:db8:1::1"},
		{"IPv6 beyond 64 bits", "2001:db8::1:0:0:1/112 2001:db8::2:0:0:1/112", "2001:db8::2:0:0:9", "2001:db8::2:0:0:1"},
		{"IPv6 link-local", "2001:db8::1/64 fe80::1/64", "fe80::9", "fe80::1"},
		{"a deprecated address is avoided", "!2001:db8:1::1/64 2001:db8:2::1/64", "2001:db8:1::9", "2001:db8:2::1"},
		{"unless it is the destination", "!2001:db8:1::1/64 2001:db8:2::1/64", "2001:db8:1::1", "2001:db8:1::1"},
		{"or the only one that reaches so far", "!2001:db8:1::1/64 fe80::1/64", "2001:db8:2::9", "2001:db8:1::1"},
		{"IPv6 multicast on the link", "2001:db8::1/64 fe80::1/64", "ff02::1", "fe80::1"},
	} {
		var own []Own
		for _, p := range strings.Fields(test.own) {
			p, deprecated := strings.CutPrefix(p, "!")
			own = append(own, Own{Prefix: prefix(p), Deprecated: deprecated})
		}
		got, ok := Source(addr(test.dst), netip.Addr{}, own)
		if ok != (test.want != "") || ok && got != addr(test.want) {
			t.Errorf("%s: to %s from %v, want %s", test.sentence, test.dst, got, test.want)
		}
	}
}

// An address of the prefix that the next hop advertised is preferred (RFC 6724 section 5, rule 5.5).
func TestSourceOfTheNextHop(t *testing.T) {
	r1, r2 := addr("fe80::1"), addr("fe80::2")
	first := Own{Prefix: prefix("2001:db8:1::a/64"), Routers: []netip.Addr{r1}}
	second := Own{Prefix: prefix("2001:db8:2::a/64"), Routers: []netip.Addr{r2}}
	both := Own{Prefix: prefix("2001:db8:3::a/64"), Routers: []netip.Addr{r1, r2}}
	byHand := Own{Prefix: prefix("2001:db8:4::a/64")}
	old := second
	old.Deprecated = true
	for _, test := range []struct {
		sentence string
		own      []Own
		hop      netip.Addr
		dst      string
		want     Own
	}{
		{"by the first router", []Own{second, first}, r1, "2001:db8:2:1::1", first},
		{"by the second", []Own{first, second}, r2, "2001:db8:1:1::1", second},
		{"by one that says nothing", []Own{first, second}, addr("fe80::3"), "2001:db8:2:1::1", second},
		{"by none", []Own{first, second}, netip.Addr{}, "2001:db8:2:1::1", second},
		{"a prefix of both routers is the next hop's, too", []Own{first, both}, r2, "2001:db8:1:1::1", both},
		{"but not more so", []Own{both, second}, r2, "2001:db8:2:1::1", second},
		{"what was configured is no other router's", []Own{byHand, second}, r2, "2001:db8:4:1::1", byHand},
		{"a deprecated address comes behind (rule 3)", []Own{first, old}, r2, "2001:db8:2:1::1", first},
		{"the same address before (rule 1)", []Own{first, second}, r1, "2001:db8:2::a", second},
	} {
		if got, ok := Source(addr(test.dst), test.hop, test.own); !ok || got != test.want.Addr() {
			t.Errorf("%s: %v, want %v", test.sentence, got, test.want.Addr())
		}
	}
}
