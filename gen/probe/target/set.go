package target

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// MaxAddresses is the maximum number of addresses in a Set, which is the number of all IPv4 addresses.
const MaxAddresses = 1 << 32

// Errors of NewSet. The returned errors wrap them and add details.
var (
	ErrFamilies = errors.New("target: IPv4 and IPv6 in one run")
	ErrTooMany  = errors.New("target: too many addresses")
)

// Set is a set of addresses of one IP version. Its addresses are numbered from 0 in ascending order. The zero Set is
// empty. The memory that a Set uses is proportional to the number of its contiguous ranges, not to the number of
// addresses.
type Set struct {
	is4   bool
	spans []span // ranges of addresses, ascending, not adjacent and not overlapping
	size  uint64
}

// span is a contiguous range of addresses.
type span struct {
	first  number
	count  uint64
	before uint64 // number of addresses in all earlier spans
}

// NewSet returns the set of the addresses that are in include and not in exclude. Entries of exclude that have the
// other IP version are ignored.
func NewSet(include, exclude []Range) (*Set, error) {
	if len(include) == 0 {
		return &Set{}, nil
	}
	s := &Set{is4: include[0].First.Is4()}
	for _, r := range include {
		if r.First.Is4() != s.is4 {
			return nil, fmt.Errorf("%w: %v and %v", ErrFamilies, include[0], r)
		}
	}
	exclude = slices.DeleteFunc(slices.Clone(exclude), func(r Range) bool { return r.First.Is4() != s.is4 })
	for _, p := range subtract(merge(include), merge(exclude)) {
		count := p.last.minus(p.first)
		if count.hi != 0 || count.lo >= MaxAddresses || s.size+count.lo+1 > MaxAddresses {
			return nil, fmt.Errorf("%w: %v has more than %d", ErrTooMany, Range{p.first.addr(s.is4), p.last.addr(s.is4)}, uint64(MaxAddresses))
		}
		s.spans = append(s.spans, span{p.first, count.lo + 1, s.size})
		s.size += count.lo + 1
	}
	return s, nil
}

// piece is a Range in the form of numbers. Both ends are included.
type piece struct{ first, last number }

// merge sorts rs and joins adjacent and overlapping ranges.
func merge(rs []Range) (ps []piece) {
	all := make([]piece, len(rs))
	for i, r := range rs {
		all[i] = piece{numberOf(r.First), numberOf(r.Last)}
	}
	slices.SortFunc(all, func(a, b piece) int { return a.first.compare(b.first) })
	for _, p := range all {
		if n := len(ps); n > 0 && p.first.compare(ps[n-1].last) <= 0 {
			if p.last.compare(ps[n-1].last) > 0 {
				ps[n-1].last = p.last
			}
		} else if n > 0 && p.first == ps[n-1].last.plus(1) {
			ps[n-1].last = p.last
		} else {
			ps = append(ps, p)
		}
	}
	return ps
}

// subtract returns the parts of the first list that are not in the second. Both lists
// must be results of merge.
func subtract(from, without []piece) (left []piece) {
	for _, p := range from {
		gone := false
		for _, w := range without {
			if w.last.compare(p.first) < 0 {
				continue
			}
			if w.first.compare(p.last) > 0 {
				break
			}
			if p.first.compare(w.first) < 0 {
				left = append(left, piece{p.first, w.first.minus(number{lo: 1})})
			}
			if w.last.compare(p.last) >= 0 {
				gone = true
				break
			}
			p.first = w.last.plus(1)
		}
		if !gone {
			left = append(left, p)
		}
	}
	return left
}

// Len returns the number of addresses.
func (s *Set) Len() uint64 { return s.size }

// Is4 reports whether the addresses are IPv4.
func (s *Set) Is4() bool { return s.is4 }

// At returns the address with number i, which must be less than Len.
func (s *Set) At(i uint64) netip.Addr {
	lo, hi := 0, len(s.spans)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.spans[mid].before <= i {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	sp := &s.spans[lo]
	return sp.first.plus(i - sp.before).addr(s.is4)
}

// Index returns the number of address a. ok is false if a is not in the set.
func (s *Set) Index(a netip.Addr) (i uint64, ok bool) {
	if s.size == 0 || !a.IsValid() || a.Is4() != s.is4 {
		return 0, false
	}
	n := numberOf(a)
	lo, hi := 0, len(s.spans)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.spans[mid].first.compare(n) <= 0 {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	sp := &s.spans[lo]
	if n.compare(sp.first) < 0 {
		return 0, false
	}
	d := n.minus(sp.first)
	return sp.before + d.lo, d.hi == 0 && d.lo < sp.count
}

// Ranges returns the contiguous ranges of the set in ascending order.
func (s *Set) Ranges() []Range {
	rs := make([]Range, len(s.spans))
	for i, sp := range s.spans {
		rs[i] = Range{sp.first.addr(s.is4), sp.first.plus(sp.count - 1).addr(s.is4)}
	}
	return rs
}
