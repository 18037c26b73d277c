package rfc2544

// search is the binary search of section 26.1 and of RFC 9004 section 5.2. It finds the highest load between 0 and top
// at which no frame is lost, to within resolution. The caller reports the outcome of each trial by the method record.
type search struct {
	low, high  float64 // low is 0 or a load that has passed; high is a load that has failed or was not tried
	resolution float64
	top        bool    // the top load has not been tried yet
	limit      float64 // the top load
}

// newSearch returns a search that first tries the top load, because that often passes.
func newSearch(top, resolution float64) *search {
	return &search{high: top, limit: top, resolution: resolution, top: true}
}

// next returns the load of the next trial. ok is false when the search is over; the result is then low.
func (s *search) next() (load float64, ok bool) {
	if s.top {
		return s.high, true
	}
	if s.high-s.low <= s.resolution {
		return 0, false
	}
	return (s.low + s.high) / 2, true
}

// reached reports whether the top load has passed. The result is then a lower bound.
func (s *search) reached() bool { return s.low > 0 && s.low >= s.limit }

// record reports the outcome of the trial with the load that next has returned.
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
