package crash

import "math/rand/v2"

// Styles: each is a way to choose at random which writes a crash loses.
const (
	whole   = iota // a write is applied or lost as a whole; writes stay in the order of submission
	torn           // some writes are applied only up to a sector
	ordered        // writes are applied or lost as a whole, in a random order
	single         // each sector is chosen separately
	styles
)

// dice makes random choices. The decision for a write is kept, so that it applies to all sectors of
// the write.
type dice struct {
	rng   *rand.Rand
	style int
	keep  float64 // share of writes that are applied
	fates map[*write]fate
}

// fate is the outcome of a write.
type fate struct {
	kept bool
	upTo int64 // its sectors from this offset on are lost
	rank uint64
}

func newDice(rng *rand.Rand, style int) *dice {
	return &dice{rng: rng, style: style, keep: rng.Float64(), fates: map[*write]fate{}}
}

// fate returns the outcome of a write, which is decided at the first call.
func (d *dice) fate(w *write) fate {
	f, ok := d.fates[w]
	if ok {
		return f
	}
	f = fate{kept: d.rng.Float64() < d.keep, upTo: w.event.Offset + w.event.Length, rank: uint64(w.submitted)}
	switch {
	case d.style == torn && d.rng.IntN(2) == 0:
		f.upTo = w.event.Offset + d.rng.Int64N(w.event.Length+1)
	case d.style == ordered:
		f.rank = d.rng.Uint64()
	}
	d.fates[w] = f
	return f
}

// choose returns the write whose value a sector has, or nil for the settled value.
func (d *dice) choose(at int64, s *sector) *write {
	if d.style == single {
		n := len(s.writes)
		if s.old {
			n++
		}
		if i := d.rng.IntN(n); i < len(s.writes) {
			return s.writes[i]
		}
		return nil
	}
	var best *write
	for _, w := range s.writes {
		f := d.fate(w)
		if f.kept && at < f.upTo && (best == nil || d.fate(best).rank < f.rank) {
			best = w
		}
	}
	if best == nil && !s.old {
		return s.writes[0]
	}
	return best
}
