package rfc2544

// search is the binary search of section 26.1 and RFC 9004 section 5.2: the highest
// load without loss, between 0 and top, as near as resolution. It is told the
// outcome of each trial.
type search struct {
	low, high  float64 // low has passed, or is 0; high has failed, or was not tried
	resolution float64
	top        bool // the top itself has still to be tried
}

// newSearch begins at the top, which may well pass.
func newSearch(top, resolution float64) *search {
	return &search{high: top, resolution: resolution, top: true}
}

// next is the load of the next trial; ok is false when the search is over and low
// is the answer.
func (s *search) next() (load float64, ok bool) {
	if s.top {
		return s.high, true
	}
	if s.high-s.low <= s.resolution {
		return 0, false
	}
	return (s.low + s.high) / 2, true
}

// told takes in the outcome of the trial that next asked for.
func (s *search) told(load float64, passed bool) {
	switch {
	case passed && s.top:
		s.low, s.high = load, load
	case passed:
		s.low = load
	default:
		s.high = load
	}
	s.top = false
}
