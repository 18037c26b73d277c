// Package target defines the targets of a probe run: the set of their addresses, and the order in which they are
// probed. It stores neither as a table.
//
// Reading order: set.go (numbered sets of addresses), list.go (their text form), reserved.go (addresses that must
// not be probed by default), order.go (a permutation of the numbers).
//
// All types are immutable after creation. The package has no clock, no goroutines and no locks, and operations per
// probe do not allocate.
package target
