// Package target says whom a probe run asks: which addresses, and in which
// order, without a table of either.
//
// Read in this order: set.go (addresses that can be counted and numbered),
// list.go (how people write them down), reserved.go (those that nobody may be
// asked without saying so), order.go (a permutation of the numbers).
//
// Everything here is a value that does not change once it is made: no clock, no
// goroutine, no lock, and what happens for each probe does not allocate.
package target
