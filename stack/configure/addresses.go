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
	// AddAddress adds an address. It returns false, and changes nothing, if the interface has the address already,
	// because a user has configured it.
	AddAddress(netip.Prefix) bool
	RemoveAddress(netip.Prefix)
}

// removeOthers removes from an interface those addresses of the list ours that are not in
// the list wanted. It returns the rest of the list ours.
func removeOthers(link Addresses, ours, wanted []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(ours, func(p netip.Prefix) bool {
		if slices.Contains(wanted, p) {
			return false
		}
		link.RemoveAddress(p)
		return true
	})
}

// addMissing adds to an interface those addresses of the list wanted that are not in the
// list ours. It returns the list ours with the addresses that were added.
func addMissing(link Addresses, ours, wanted []netip.Prefix) []netip.Prefix {
	for _, p := range wanted {
		if !slices.Contains(ours, p) && link.AddAddress(p) {
			ours = append(ours, p)
		}
	}
	return ours
}

// without removes x from list and returns the result.
func without[T comparable](list []T, x T) []T {
	return slices.DeleteFunc(list, func(o T) bool { return o == x })
}
