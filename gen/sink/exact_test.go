package sink

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/fault"
)

// For any fault that a wire adds to the frames of a flow, the sink's counts equal those of link/fault. Rates,
// distances and delays are random, from one seed.
func TestFaultsOfAnyKindAreCountedExactly(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	rate := func() float64 { return max(0, r.Float64()-0.5) / 2 } // returns 0 in half of the cases, otherwise a rate of up to 1/4
	cases := 60
	if testing.Short() {
		cases = 10
	}
	for range cases {
		c := fault.Config{Seed: r.Uint64(), Send: fault.Direction{
			Loss: rate(), Duplicate: rate(), Reorder: rate(), ReorderDistance: 1 + r.IntN(40),
			Delay: time.Duration(r.IntN(2)) * time.Millisecond, Jitter: time.Duration(r.IntN(200)) * time.Microsecond,
		}}
		synctest.Test(t, func(t *testing.T) { exactly(t, c) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func exactly(t *testing.T, c fault.Config) {
	const frames = 2000
	r, injected := across(t, c, frames, 1)
	got := r.Total
	// If a frame is duplicated, the first copy may be the one that is held back. The second copy then overtakes it,
	// and the late first copy counts as the duplicate.
	late := uint64(0)
	if c.Send.Duplicate > 0 && c.Send.Reorder > 0 && injected.Reordered > got.Reordered {
		late = min(got.Duplicates, injected.Reordered-got.Reordered)
	}
	switch {
	case injected.Frames != 0 && injected.Frames != frames:
		t.Errorf("%d frames came through, %d were sent", injected.Frames, frames)
	case frames-got.Unique != injected.Lost, got.Duplicates != injected.Duplicated, got.Reordered+late != injected.Reordered, got.Ancient != 0:
		t.Errorf("%+v: counted %+v, injected %+v", c.Send, got, injected)
	}
}
