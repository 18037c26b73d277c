package span

import (
	"math/rand/v2"
	"testing"
)

// After random operations, a set has the same blocks as a bitmap. Sets from before an operation do not change.
func TestSet(t *testing.T) {
	const end = 64
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s Set
		var want [end]bool
		for range 30 {
			from := rnd.Uint64N(end)
			to := from
			for to < end && !want[to] && to < from+5 {
				to++
			}
			old, before := s, s.Blocks()
			if to > from {
				s = s.Add(Span{from, to})
			}
			for b := from; b < to; b++ {
				want[b] = true
			}
			if old.Blocks() != before {
				t.Fatal("an older set has changed")
			}
			if rnd.IntN(10) == 0 {
				cut := rnd.Uint64N(end)
				kept, rest := s.Split(cut)
				if kept.Blocks()+rest.Blocks() != s.Blocks() {
					t.Fatalf("%v becomes %v and %v at %d", s, kept, rest, cut)
				}
				s = kept
				clear(want[cut:])
			}
			agree(t, s, want[:])
		}
	}
}

func agree(t *testing.T, s Set, want []bool) {
	t.Helper()
	n := uint64(0)
	for b, in := range want {
		got, length := s.Find(uint64(b))
		if got != in {
			t.Fatalf("%v: block %d is %v, want %v", s, b, got, in)
		}
		for k := range length {
			if int(k)+b < len(want) && want[b+int(k)] != in {
				t.Fatalf("%v: %d blocks from %d on are not the same", s, length, b)
			}
		}
		if in {
			n++
		}
	}
	if s.Blocks() != n {
		t.Fatalf("%v has %d blocks, want %d", s, s.Blocks(), n)
	}
	for i := 1; i < len(s); i++ {
		if s[i-1].To >= s[i].From {
			t.Fatalf("%v: ranges touch", s)
		}
	}
}
