package target

import (
	"math"
	"testing"
)

// Every number below the bound occurs once, and Position is the inverse of At.
func TestOrderIsAPermutation(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 4, 5, 7, 8, 9, 100, 255, 256, 257, 4095, 65537} {
		for seed := range uint64(3) {
			o := NewOrder(n, seed)
			seen := make([]bool, n)
			for p := range n {
				x := o.At(p)
				if x >= n || seen[x] {
					t.Fatalf("%d numbers, seed %d: position %d names %d, which is too large or a repetition", n, seed, p, x)
				}
				seen[x] = true
				if back := o.Position(x); back != p {
					t.Fatalf("%d numbers, seed %d: %d has position %d, want %d", n, seed, x, back, p)
				}
			}
		}
	}
}

func TestOrderOfTheLargestSets(t *testing.T) {
	for _, n := range []uint64{1<<32 - 1, 1 << 32, 1<<32 + 1, 1 << 48} {
		o := NewOrder(n, 5)
		for p := uint64(0); p < n; p += n/1000 + 1 {
			if x := o.At(p); x >= n || o.Position(x) != p {
				t.Fatalf("%d numbers: position %d names %d, which has position %d", n, p, x, o.Position(x))
			}
		}
	}
}

func TestOrderBySeed(t *testing.T) {
	const n = 1 << 16
	a, b, again := NewOrder(n, 1), NewOrder(n, 2), NewOrder(n, 1)
	same := 0
	for p := range uint64(n) {
		if a.At(p) == b.At(p) {
			same++
		}
		if a.At(p) != again.At(p) {
			t.Fatal("the same seed gave another order")
		}
	}
	// Two random permutations agree in one place on average.
	if same > 10 {
		t.Errorf("two seeds agree in %d places of %d", same, n)
	}
}

// Probes must not hit the same network in a row: any window of positions is spread over the whole range. The
// chi-squared test compares the number of hits in each of 256 subnets with a uniform distribution. The statistic
// has mean 255 and standard deviation 22.6.
func TestOrderSpreads(t *testing.T) {
	const n, subnets, window = 1 << 23, 256, 1 << 16
	for seed := range uint64(4) {
		o := NewOrder(n, seed)
		for _, start := range []uint64{0, n / 2, n - window} {
			var hits [subnets]float64
			follows := 0
			for p := start; p < start+window; p++ {
				x := o.At(p)
				hits[x*subnets/n]++
				if p > start && x/256 == o.At(p-1)/256 {
					follows++
				}
			}
			chi := 0.0
			for _, h := range hits {
				chi += (h - window/subnets) * (h - window/subnets) / (window / subnets)
			}
			if math.Abs(chi-255) > 6*22.6 {
				t.Errorf("seed %d from %d: chi squared is %.0f, want about 255", seed, start, chi)
			}
			// Two consecutive positions fall into the same /24 with probability 1/32768: twice in this window.
			if follows > 14 {
				t.Errorf("seed %d from %d: %d neighbours fell into one /24", seed, start, follows)
			}
		}
	}
}
