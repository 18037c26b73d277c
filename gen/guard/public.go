// Package guard prevents the packet engine from causing harm. It recognizes public addresses, and drops the
// privileges of the process when they are no longer needed.
//
// The settings of network interfaces need no protection by this package. All settings that the methods change are tied
// to their descriptors, so the kernel restores them even if the process is killed.
package guard

import (
	"fmt"
	"net/netip"
	"strings"
)

// ModestRate is the highest rate, in frames per second, to public addresses without explicit permission.
const ModestRate = 1000

// ours are the ranges of addresses that are not public: private, local, documentation, benchmarking and multicast
// addresses (the registries of RFC 6890, and RFC 1112 and 4291).
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

// Public reports whether the prefix may contain a public address.
func Public(p netip.Prefix) bool {
	for _, o := range ours {
		if o.Bits() <= p.Bits() && o.Contains(p.Addr()) {
			return false
		}
	}
	return true
}

// PublicPattern reports whether a field with the given pattern may contain a public address. Package frame describes
// the patterns. A pattern that cannot be parsed counts as public.
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

// span returns the longest prefix that contains s, which is an address, a prefix or a range.
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
		return netip.Prefix{}, false // START+STEP may reach any address
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

// Refusal is the error of Check for public addresses at a rate above ModestRate.
type Refusal struct {
	Destination string
	Rate        float64 // frames per second, +Inf for no limit
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s is a public address, and more than %d frames a second to it may be an attack", r.Destination, ModestRate)
}

// Check returns a *Refusal if the destination may be public and the rate exceeds ModestRate.
func Check(destination string, framesPerSecond float64) error {
	if framesPerSecond <= ModestRate || !PublicPattern(destination) {
		return nil
	}
	return &Refusal{destination, framesPerSecond}
}
