package group

import (
	"net/netip"
	"slices"
)

// Filter says of which sources a group is heard (RFC 9776 section 2, RFC 9777 section 3): of
// Sources alone, in the mode INCLUDE, or of all but these, in the mode EXCLUDE. The zero value
// is INCLUDE {}: the group is not heard.
type Filter struct {
	Exclude bool
	Sources []netip.Addr
}

// Everyone is EXCLUDE {}: a group that is heard from all sources.
var Everyone = Filter{Exclude: true}

// None reports whether nobody is heard.
func (f Filter) None() bool { return !f.Exclude && len(f.Sources) == 0 }

// Hears reports whether a source is heard.
func (f Filter) Hears(source netip.Addr) bool {
	return slices.Contains(f.Sources, source) != f.Exclude
}

// equal reports whether two filters in order are one.
func (f Filter) equal(g Filter) bool {
	return f.Exclude == g.Exclude && slices.Equal(f.Sources, g.Sources)
}

// minus is what is in a and not in b, in a's order.
func minus(a, b []netip.Addr) (list []netip.Addr) {
	for _, source := range a {
		if !slices.Contains(b, source) {
			list = append(list, source)
		}
	}
	return list
}
