package target

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
)

func ranges(t testing.TB, list ...string) []Range {
	t.Helper()
	var rs []Range
	for _, s := range list {
		r, err := ParseRange(s)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	return rs
}

func texts(rs []Range) (list []string) {
	for _, r := range rs {
		list = append(list, r.String())
	}
	return list
}

// A set contains the included addresses without the excluded ones, in ascending order and in as few ranges as
// possible.
func TestSet(t *testing.T) {
	for _, c := range []struct {
		why              string
		include, exclude []string
		want             []string
		size             uint64
	}{
		{"nothing", nil, nil, nil, 0},
		{"one address", []string{"192.0.2.1"}, nil, []string{"192.0.2.1"}, 1},
		{"a prefix", []string{"10.0.0.0/9"}, nil, []string{"10.0.0.0/9"}, 1 << 23},
		{"neighbours are one piece", []string{"10.0.1.0/24", "10.0.0.0/24"}, nil, []string{"10.0.0.0/23"}, 512},
		{"what overlaps counts once", []string{"10.0.0.0/24", "10.0.0.128/25", "10.0.0.255"}, nil, []string{"10.0.0.0/24"}, 256},
		{"a hole", []string{"10.0.0.0/24"}, []string{"10.0.0.1"}, []string{"10.0.0.0", "10.0.0.2-10.0.0.255"}, 255},
		{"ends cut off", []string{"10.0.0.0/24"}, []string{"9.0.0.0-10.0.0.3", "10.0.0.254-11.0.0.0"}, []string{"10.0.0.4-10.0.0.253"}, 250},
		{"all of it", []string{"10.0.0.0/24"}, []string{"10.0.0.0/8"}, nil, 0},
		{"the other family is not meant", []string{"10.0.0.0/30"}, []string{"::/0"}, []string{"10.0.0.0/30"}, 4},
		{"everything", []string{"0.0.0.0/0"}, nil, []string{"0.0.0.0/0"}, 1 << 32},
		{"the last address", []string{"255.255.255.254-255.255.255.255"}, []string{"255.255.255.255"}, []string{"255.255.255.254"}, 1},
		{"IPv6 over the middle", []string{"2001:db8::ffff:ffff:ffff:fff0-2001:db8:0:1::f"}, nil,
			[]string{"2001:db8::ffff:ffff:ffff:fff0-2001:db8:0:1::f"}, 32},
		{"the end of IPv6", []string{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120"}, []string{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
			[]string{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"}, 255},
		{"the largest of IPv6", []string{"fd00::/96"}, nil, []string{"fd00::/96"}, 1 << 32},
	} {
		s, err := NewSet(ranges(t, c.include...), ranges(t, c.exclude...))
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if got := texts(s.Ranges()); !slices.Equal(got, c.want) || s.Len() != c.size {
			t.Errorf("%s: %v with %d addresses, want %v with %d", c.why, got, s.Len(), c.want, c.size)
		}
		checkNumbers(t, c.why, s)
	}
}

// checkNumbers checks that At and Index are inverse at both ends of every range, and that addresses next to a range
// are not in the set.
func checkNumbers(t *testing.T, why string, s *Set) {
	t.Helper()
	var i uint64
	for _, r := range s.Ranges() {
		n, _ := r.Size()
		for _, at := range []struct {
			i uint64
			a netip.Addr
		}{{i, r.First}, {i + n - 1, r.Last}} {
			if got := s.At(at.i); got != at.a {
				t.Errorf("%s: number %d is %v, want %v", why, at.i, got, at.a)
			}
			if got, ok := s.Index(at.a); !ok || got != at.i {
				t.Errorf("%s: %v has number %d, %v, want %d", why, at.a, got, ok, at.i)
			}
		}
		for _, beside := range []netip.Addr{r.First.Prev(), r.Last.Next()} {
			if got, ok := s.Index(beside); ok {
				t.Errorf("%s: %v, which is outside, has number %d", why, beside, got)
			}
		}
		i += n
	}
}

func TestSetRefuses(t *testing.T) {
	for _, c := range []struct {
		include []string
		want    error
	}{
		{[]string{"10.0.0.0/8", "fd00::/120"}, ErrFamilies},
		{[]string{"fd00::/95"}, ErrTooMany},
		{[]string{"fd00::/64"}, ErrTooMany},
		{[]string{"::/0"}, ErrTooMany},
		{[]string{"fd00::/96", "fd01::1"}, ErrTooMany},
	} {
		if s, err := NewSet(ranges(t, c.include...), nil); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, %v; want %v", c.include, s, err, c.want)
		}
	}
	if _, ok := (&Set{}).Index(netip.MustParseAddr("192.0.2.1")); ok {
		t.Error("the empty set has an address")
	}
}

func TestRangeSize(t *testing.T) {
	for s, want := range map[string]uint64{"192.0.2.7": 1, "0.0.0.0/0": 1 << 32, "fd00::/65": 1 << 63} {
		if n, ok := ranges(t, s)[0].Size(); n != want || !ok {
			t.Errorf("%s: %d, %v", s, n, ok)
		}
	}
	for _, s := range []string{"fd00::/64", "fd00::/63", "::/0"} {
		if n, ok := ranges(t, s)[0].Size(); ok {
			t.Errorf("%s: %d", s, n)
		}
	}
}

func TestNumbersDoNotAllocate(t *testing.T) {
	s, err := NewSet(ranges(t, "10.0.0.0/9", "192.0.2.0/24"), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := NewOrder(s.Len(), 1)
	if n := testing.AllocsPerRun(100, func() {
		if i, ok := s.Index(s.At(o.At(77))); !ok || o.Position(i) != 77 {
			t.Error("lost its way")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkThereAndBack(b *testing.B) {
	s, _ := NewSet(ranges(b, "10.0.0.0/9"), nil)
	o := NewOrder(s.Len(), 1)
	i := uint64(0)
	for b.Loop() {
		n, _ := s.Index(s.At(o.At(i % s.Len())))
		o.Position(n)
		i++
	}
}
