package ranges

import (
	"math/rand/v2"
	"testing"
)

func TestListAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		base := Seq(rng.Uint32())
		var r List
		var have [400]bool
		for range 60 {
			from := 1 + rng.IntN(380)
			to := from + 1 + rng.IntN(15)
			overlap, ok := r.Insert(Span{base.Add(from), base.Add(to)}, Max)
			if !ok {
				t.Fatal("no room for a range")
			}
			known := false
			for i := from; i < to; i++ {
				known = known || have[i]
			}
			if known == overlap.Empty() || known && !have[overlap.From-base] {
				t.Fatalf("overlap of %d to %d is %v", from, to, overlap)
			}
			for i := from; i < to; i++ {
				have[i] = true
			}
			if s := r.Recent[0]; !s.From.LessEq(base.Add(from)) || !base.Add(to).LessEq(s.To) {
				t.Fatal("the latest range does not hold what came last")
			}
			var got [400]bool
			last := base
			for _, s := range r.Ranges {
				if !last.Less(s.From) {
					t.Fatal("ranges touch or are out of order")
				}
				for i := s.From; i != s.To; i++ {
					got[i-base] = true
				}
				last = s.To
			}
			if got != have {
				t.Fatalf("ranges %v, want %v", got, have)
			}
		}
	}
}
