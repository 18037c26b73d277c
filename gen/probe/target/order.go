package target

import "math/bits"

// Order is a permutation of the numbers below a bound n. It is computed, not stored: At returns the number at a
// position, and over all positions it returns every number exactly once. Position is the inverse; it gives the position
// of an answered question from the question's number. The record of answers is indexed by position, so that a shard
// stores only its own positions.
//
// Order is a Feistel network over the two halves of a number's bits. It is repeated until the result is less than the
// bound (cycle walking; Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002, section 4). In each round,
// one half is changed by a function of the other half. This function need not be invertible, but the network is. The
// halves may differ in width by one bit. On average fewer than two repetitions are needed, because the bound has as
// many bits as the network.
//
// Rejected: the powers of a generator modulo a prime. The next number is then one multiplication, but the position of a
// number cannot be computed from the number, and the number at an arbitrary position needs a modular power.
//
// Adjacent positions have numbers that are not adjacent. The order is not secret; answers are authenticated by tags.
type Order struct {
	n        uint64
	low      uint // width of the lower half in bits
	lowMask  uint64
	highMask uint64
	keys     [feistelRounds]uint64
	single   bool // n is at most 1: the permutation is trivial
}

// feistelRounds is the number of rounds. With fewer than four rounds, the result still shows patterns of the input.
// (Luby and Rackoff, 1988, prove that four are needed against an adversary who can also invert the permutation.)
const feistelRounds = 4

// NewOrder returns a permutation of the numbers below n. The same seed gives the same permutation.
func NewOrder(n, seed uint64) *Order {
	width := uint(bits.Len64(max(n, 2) - 1))
	o := &Order{n: n, low: width / 2, single: n <= 1}
	o.lowMask = 1<<o.low - 1
	o.highMask = 1<<(width-o.low) - 1
	for i := range o.keys {
		seed += 0x9e3779b97f4a7c15 // the constant of the golden ratio: each round gets a different key
		o.keys[i] = mix(seed)
	}
	return o
}

// At returns the number at a position, which must be less than the bound.
func (o *Order) At(position uint64) uint64 {
	if o.single {
		return position
	}
	for {
		position = o.forward(position)
		if position < o.n {
			return position
		}
	}
}

// Position returns the position at which At returns number.
func (o *Order) Position(number uint64) uint64 {
	if o.single {
		return number
	}
	for {
		number = o.backward(number)
		if number < o.n {
			return number
		}
	}
}

func (o *Order) forward(x uint64) uint64 {
	high, low := x>>o.low, x&o.lowMask
	for i := 0; i < feistelRounds; i += 2 {
		high ^= mix(low+o.keys[i]) & o.highMask
		low ^= mix(high+o.keys[i+1]) & o.lowMask
	}
	return high<<o.low | low
}

func (o *Order) backward(x uint64) uint64 {
	high, low := x>>o.low, x&o.lowMask
	for i := feistelRounds - 2; i >= 0; i -= 2 {
		low ^= mix(high+o.keys[i+1]) & o.lowMask
		high ^= mix(low+o.keys[i]) & o.highMask
	}
	return high<<o.low | low
}

// mix spreads every bit of x over the whole word. It is the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast
// Splittable Pseudorandom Number Generators", 2014, figure 16).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
