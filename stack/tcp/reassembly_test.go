package tcp

import (
	"math/rand/v2"
	"testing"
)

func TestReassemblyAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		base := Seq(rng.Uint32())
		var r reassembly
		var have [400]bool
		for range 60 {
			from := 1 + rng.IntN(380)
			to := from + 1 + rng.IntN(15)
			overlap, ok := r.insert(span{base.Add(from), base.Add(to)}, maxRanges)
			if !ok {
				t.Fatal("no room for a range")
			}
			known := false
			for i := from; i < to; i++ {
				known = known || have[i]
			}
			if known == overlap.empty() || known && !have[overlap.from-base] {
				t.Fatalf("overlap of %d to %d is %v", from, to, overlap)
			}
			for i := from; i < to; i++ {
				have[i] = true
			}
			if s := r.recent[0]; !s.from.LessEq(base.Add(from)) || !base.Add(to).LessEq(s.to) {
				t.Fatal("the latest range does not hold what came last")
			}
			var got [400]bool
			last := base
			for _, s := range r.ranges {
				if !last.Less(s.from) {
					t.Fatal("ranges touch or are out of order")
				}
				for i := s.from; i != s.to; i++ {
					got[i-base] = true
				}
				last = s.to
			}
			if got != have {
				t.Fatalf("ranges %v, want %v", got, have)
			}
		}
	}
}
