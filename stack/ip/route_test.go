package ip

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestLongestPrefixWins(t *testing.T) {
	table := NewTable([]Route{
		{Dst: prefix("0.0.0.0/0"), Interface: 1},
		{Dst: prefix("10.0.0.0/8"), Interface: 2},
		{Dst: prefix("10.1.0.0/16"), Interface: 3},
		{Dst: prefix("10.1.2.3/32"), Interface: 4},
		{Dst: prefix("10.255.0.0/16"), Interface: 5},
		{Dst: prefix("255.255.255.255/32"), Interface: 6},
		{Dst: prefix("2001:db8::/32"), Interface: 7},
		{Dst: prefix("2001:db8::1/128"), Interface: 8},
		{Dst: prefix("2001:db8:0:0:ff00::/72"), Interface: 9},
	})
	for dst, want := range map[string]int{
		"0.0.0.0":                  1,
		"9.255.255.255":            1,
		"10.0.0.0":                 2,
		"10.1.0.0":                 3,
		"10.1.2.2":                 3,
		"10.1.2.3":                 4,
		"10.1.2.4":                 3,
		"10.2.0.0":                 2,
		"10.255.255.255":           5,
		"11.0.0.0":                 1,
		"255.255.255.254":          1,
		"255.255.255.255":          6,
		"2001:db8::":               7,
		"2001:db8::1":              8,
		"2001:db8::2":              7,
		"2001:db8::ff00:0:0:0":     9,
		"2001:db8::ff00:0:0:ffff":  9,
		"2001:db7:ffff:ffff::":     0,
		"2001:db9::":               0,
		"ffff::":                   0,
		"::ffff:10.1.2.3":          0,
		"2001:db8::1%eth0":         8,
		"2001:db8:0:0:feff:ffff::": 7,
	} {
		r, ok := table.Lookup(addr(dst))
		if r.Interface != want || ok != (want != 0) {
			t.Errorf("the route to %s is %+v, want that of interface %d", dst, r, want)
		}
	}
}

func TestLowestMetricWinsAmongEqualPrefixes(t *testing.T) {
	table := NewTable([]Route{
		{Dst: prefix("192.0.2.0/24"), Interface: 1, Metric: 100},
		{Dst: prefix("192.0.2.7/24"), Interface: 2, Metric: 10}, // host bits are ignored
		{Dst: prefix("192.0.2.0/24"), Interface: 3, Metric: 10},
		{Dst: prefix("192.0.0.0/16"), Interface: 4, Metric: 0},
	})
	if r, _ := table.Lookup(addr("192.0.2.1")); r.Interface != 2 {
		t.Errorf("interface %d is chosen, want the first of the lowest metric", r.Interface)
	}
}

func TestEmptyTable(t *testing.T) {
	var zero Table
	made := NewTable(nil)
	for _, table := range []*Table{&zero, &made} {
		if _, ok := table.Lookup(addr("192.0.2.1")); ok {
			t.Error("an empty table has a route")
		}
	}
}

func TestTableDoesNotKeepTheCallersSlice(t *testing.T) {
	routes := []Route{{Dst: prefix("192.0.2.0/24"), Interface: 1}}
	table := NewTable(routes)
	routes[0].Interface = 2
	if r, _ := table.Lookup(addr("192.0.2.1")); r.Interface != 1 {
		t.Error("a published table changes")
	}
}

// slowLookup checks every route.
func slowLookup(routes []Route, dst netip.Addr) (best Route, ok bool) {
	for _, r := range routes {
		better := !ok || r.Dst.Bits() > best.Dst.Bits() ||
			r.Dst.Bits() == best.Dst.Bits() && r.Metric < best.Metric
		if r.Dst.Contains(dst) && better {
			best, ok = r, true
		}
	}
	best.Dst = best.Dst.Masked()
	return best, ok
}

func wantSame(t *testing.T, table *Table, routes []Route, dst netip.Addr) {
	t.Helper()
	want, wantOK := slowLookup(routes, dst)
	if !wantOK {
		want = Route{}
	}
	if got, ok := table.Lookup(dst); got != want || ok != wantOK {
		t.Fatalf("the route to %v is %+v (%v), want %+v (%v)", dst, got, ok, want, wantOK)
	}
}

// edges calls f with the addresses at the bounds of p.
func edges(p netip.Prefix, f func(netip.Addr)) {
	first := p.Masked().Addr()
	last := first.AsSlice()
	for bit := p.Bits(); bit < first.BitLen(); bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last)
	for _, a := range []netip.Addr{first.Prev(), first, first.Next(), end.Prev(), end, end.Next()} {
		if a.IsValid() {
			f(a)
		}
	}
}

func TestTableAgainstSlowLookup(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{1, 2, 10, 100, 400} {
		var routes []Route
		for i := range count {
			routes = append(routes, Route{Dst: randomPrefix(r), Interface: i + 1, Metric: r.IntN(3)})
		}
		table := NewTable(routes)
		for _, route := range routes {
			edges(route.Dst, func(a netip.Addr) { wantSame(t, &table, routes, a) })
			wantSame(t, &table, routes, randomPrefix(r).Addr())
		}
	}
}

// randomPrefix uses only a few random bits, so that prefixes nest and touch.
func randomPrefix(r *rand.Rand) netip.Prefix {
	var b [16]byte
	for i := range b {
		b[i] = []byte{0, 1, 0x80, 0xff}[r.IntN(4)]
	}
	if r.IntN(2) == 0 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(b[:4])), r.IntN(33))
	}
	return netip.PrefixFrom(netip.AddrFrom16(b), r.IntN(129))
}

// FuzzTable decodes routes from the input, six bytes each for IPv4 and ten for the upper half of an IPv6
// address. It compares lookups around the bounds of all prefixes.
func FuzzTable(f *testing.F) {
	f.Add([]byte{8, 10, 0, 0, 0, 1, 0x84, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 32, 255, 255, 255, 255, 1, 1, 128, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var routes []Route
		for len(b) >= 10 && len(routes) < 200 {
			route := Route{Interface: len(routes) + 1, Metric: int(b[5] & 3)}
			if b[0] < 128 {
				route.Dst = netip.PrefixFrom(netip.AddrFrom4([4]byte(b[1:5])), int(b[0])%33)
				b = b[6:]
			} else {
				var a [16]byte
				copy(a[:], b[2:10])
				copy(a[8:], b[2:10])
				route.Dst = netip.PrefixFrom(netip.AddrFrom16(a), int(b[1])%129)
				b = b[10:]
			}
			routes = append(routes, route)
		}
		table := NewTable(routes)
		for _, route := range routes {
			edges(route.Dst, func(a netip.Addr) { wantSame(t, &table, routes, a) })
		}
	})
}

// internetTable returns n routes with the prefix lengths of a backbone router: mostly /24, the rest down to
// /8.
func internetTable(n int) ([]Route, *rand.Rand) {
	r := rand.New(rand.NewPCG(3, 4))
	routes := []Route{{Dst: prefix("0.0.0.0/0"), Interface: 1}}
	for len(routes) < n {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], r.Uint32())
		bits := 24
		if r.IntN(5) < 2 {
			bits = 8 + r.IntN(16)
		}
		routes = append(routes, Route{Dst: netip.PrefixFrom(netip.AddrFrom4(b), bits), Interface: 2})
	}
	return routes, r
}

func TestLookupDoesNotAllocate(t *testing.T) {
	routes, _ := internetTable(1000)
	table := NewTable(routes)
	if n := testing.AllocsPerRun(100, func() { table.Lookup(addr("192.0.2.1")) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1, 100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			routes, r := internetTable(n)
			table := NewTable(routes)
			var dst [1024]netip.Addr
			for i := range dst {
				var a [4]byte
				binary.BigEndian.PutUint32(a[:], r.Uint32())
				dst[i] = netip.AddrFrom4(a)
			}
			i := 0
			for b.Loop() {
				table.Lookup(dst[i%len(dst)])
				i++
			}
		})
	}
}

func BenchmarkNewTable(b *testing.B) {
	routes, _ := internetTable(100_000)
	for b.Loop() {
		NewTable(routes)
	}
}
