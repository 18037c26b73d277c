package target

import "math/bits"

// Order is a permutation of the numbers below a bound that is computed, not
// stored: position after position it names every number once, and none twice.
// It goes both ways, so that an answer, which tells the number, finds the
// position at which it was asked; the memory of who has answered is kept by
// position, and a shard needs to remember its own positions only.
//
// It is a Feistel network over the two halves of a number's bits, walked until
// it comes out below the bound (Black and Rogaway, "Ciphers with Arbitrary
// Finite Domains", 2002, section 4: cycle walking). Each half changes the other
// by a function that need not be invertible, which is why the whole is. The
// halves may differ in width by a bit; on average less than two walks are
// needed, since the bound has as many bits as the network.
//
// Not taken: the powers of a generator modulo a prime. They give the next number
// for one multiplication, but say nothing about the position of a number, and
// nothing about the number at a position without computing a power.
//
// An Order scatters: neighbours in position are no neighbours in number. It keeps
// no secret; that an answer is genuine is seen from its tag.
type Order struct {
	n        uint64
	low      uint // bits of the lower half
	lowMask  uint64
	highMask uint64
	keys     [feistelRounds]uint64
	single   bool // n is at most 1: there is nothing to permute
}

// feistelRounds is four: with fewer, traces of the input remain (Luby and
// Rackoff, 1988, need four against one who also runs it backwards).
const feistelRounds = 4

// NewOrder permutes the numbers below n. The same seed gives the same order.
func NewOrder(n, seed uint64) *Order {
	width := uint(bits.Len64(max(n, 2) - 1))
	o := &Order{n: n, low: width / 2, single: n <= 1}
	o.lowMask = 1<<o.low - 1
	o.highMask = 1<<(width-o.low) - 1
	for i := range o.keys {
		seed += 0x9e3779b97f4a7c15 // the golden ratio: no two rounds have one key
		o.keys[i] = mix(seed)
	}
	return o
}

// At is the number at a position below the bound.
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

// Position is where At gives number.
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

// mix spreads every bit of x over the whole word: the finaliser of SplitMix64
// (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
// 2014, figure 16).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
