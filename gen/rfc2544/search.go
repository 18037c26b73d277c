package rfc2544

// search is the binary search of section 26.1 and RFC 9004 section 5.2. It finds the highest load without loss
// between 0 and top, within resolution. The caller reports the outcome of each trial with record.
type search struct {
	low, high  float64 // low has passed or is 0; high has failed or was not tried
	resolution float64
	top        bool    // the top itself has not been tried yet
	limit      float64 // the top
}

// newSearch returns a search that tries the top first, because it often passes.
func newSearch(top, resolution float64) *search {
	return &search{high: top, limit: top, resolution: resolution, top: true}
}

// next returns the load of the next trial. ok is false when the search is over and low is the result.
func (s *search) next() (load float64, ok bool) {
	if s.top {
		return s.high, true
	}
	if s.high-s.low <= s.resolution {
		return 0, false
	}
	return (s.low + s.high) / 2, true
}

// reached reports whether the top passed. The result is then a lower bound.
func (s *search) reached() bool { return s.low > 0 && s.low >= s.limit }

// record records the outcome of the trial with the load that next returned.
func (s *search) record(load float64, passed bool) {
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
