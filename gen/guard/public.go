// Package guard keeps the packet engine from doing harm: it knows addresses that
// are somebody else's, and gives up what the process may do once it has what it
// needs.
//
// An interface needs no guard: nothing that the methods set outlives their
// descriptors, so the kernel takes it back however the process ends.
package guard

import (
	"fmt"
	"net/netip"
	"strings"
)

// ModestRate is how many frames a second may go to public addresses without being
// asked for twice.
const ModestRate = 1000

// ours are the ranges that are not public: private, local, for documentation,
// benchmarks and groups (the registries of RFC 6890, and RFC 1112, 4291).
var ours = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "255.255.255.255/32",
	"::/128", "::1/128", "2001:2::/48", "2001:db8::/32", "3fff::/20", "fc00::/7", "fe80::/10", "ff00::/8",
)

func prefixes(list ...string) (all []netip.Prefix) {
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// Public reports whether an address of the prefix may be somebody else's.
func Public(p netip.Prefix) bool {
	for _, o := range ours {
		if o.Bits() <= p.Bits() && o.Contains(p.Addr()) {
			return false
		}
	}
	return true
}

// PublicPattern reports whether a field of a template may hold a public address:
// see package frame for the forms. What it does not understand is public.
func PublicPattern(pattern string) bool {
	pattern = strings.TrimPrefix(pattern, "random:")
	for one := range strings.SplitSeq(pattern, ",") {
		p, ok := span(one)
		if !ok || Public(p) {
			return true
		}
	}
	return false
}

// span is the narrowest prefix that has an address, a prefix, or a range.
func span(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		high = low
	}
	high, _, _ = strings.Cut(high, "+")
	if strings.Contains(low, "+") {
		return netip.Prefix{}, false // START+STEP goes everywhere
	}
	a, err1 := netip.ParseAddr(low)
	b, err2 := netip.ParseAddr(high)
	if err1 != nil || err2 != nil {
		return netip.Prefix{}, false
	}
	for bits := a.BitLen(); bits >= 0; bits-- {
		if p, err := a.Prefix(bits); err == nil && p.Contains(b) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// Refusal is what Check returns for public addresses above ModestRate.
type Refusal struct {
	Destination string
	Rate        float64 // frames a second, +Inf for no limit
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s is a public address, and more than %d frames a second to it may be an attack", r.Destination, ModestRate)
}

// Check refuses a destination that may be public, at a rate that is not modest.
func Check(destination string, framesPerSecond float64) error {
	if framesPerSecond <= ModestRate || !PublicPattern(destination) {
		return nil
	}
	return &Refusal{destination, framesPerSecond}
}
