package configure

import (
	"net/netip"
	"slices"
	"time"
)

// Time is a time of the clock of the stack.
type Time = time.Duration

// never is the deadline of a configuration without a timer.
const never = Time(1<<63 - 1)

// Addresses are the addresses of an interface.
type Addresses interface {
	// AddAddress adds an address, and reports whether it did: an address of the user remains as it is.
	AddAddress(netip.Prefix) bool
	RemoveAddress(netip.Prefix)
}

// removeOthers removes the addresses that are not wanted from an interface, and returns the rest.
func removeOthers(link Addresses, ours, wanted []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(ours, func(p netip.Prefix) bool {
		if slices.Contains(wanted, p) {
			return false
		}
		link.RemoveAddress(p)
		return true
	})
}

// addMissing adds wanted addresses to an interface, and returns those that are then its own.
func addMissing(link Addresses, ours, wanted []netip.Prefix) []netip.Prefix {
	for _, p := range wanted {
		if !slices.Contains(ours, p) && link.AddAddress(p) {
			ours = append(ours, p)
		}
	}
	return ours
}

// without returns the list without x.
func without[T comparable](list []T, x T) []T {
	return slices.DeleteFunc(list, func(o T) bool { return o == x })
}
