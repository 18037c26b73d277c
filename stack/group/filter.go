package group

import (
	"net/netip"
	"slices"
)

// Filter selects the sources from which a group is received (RFC 9776 section 2, RFC 9777 section 3): only
// from Sources in mode INCLUDE, or from all others in mode EXCLUDE. The zero value is INCLUDE {}: the group
// is not received.
type Filter struct {
	Exclude bool
	Sources []netip.Addr
}

// Everyone is the filter EXCLUDE {}: a group is received from all sources.
var Everyone = Filter{Exclude: true}

// None reports whether the filter accepts no source.
func (f Filter) None() bool { return !f.Exclude && len(f.Sources) == 0 }

// Accepts reports whether the filter accepts a source.
func (f Filter) Accepts(source netip.Addr) bool {
	return slices.Contains(f.Sources, source) != f.Exclude
}

// equal reports whether two sorted filters are equal.
func (f Filter) equal(g Filter) bool {
	return f.Exclude == g.Exclude && slices.Equal(f.Sources, g.Sources)
}

// minus returns the elements of a that are not in b, in a's order.
func minus(a, b []netip.Addr) (list []netip.Addr) {
	for _, source := range a {
		if !slices.Contains(b, source) {
			list = append(list, source)
		}
	}
	return list
}
