package plpmtud

import "time"

// Search is the state of the search of one connection. The names in parentheses are those of RFC 4821.
type Search struct {
	low  uint16 // largest size that the path carries as far as known (search_low); also the size of packets that are no probes (eff_pmtu)
	high uint16 // largest size that is worth a probe (search_high)
	most uint16 // limit of high: the smallest of the sizes that the link, the peer and the reports of routers allow

	base, floor, threshold uint16
	interval               time.Duration

	probe  uint16        // size of the probe in flight; 0: none
	losses uint8         // lost probes of the size that is tried now
	top    bool          // high itself is tried next
	holed  bool          // a black hole was suspected and no probe has been delivered or lost since: one lost probe of high is enough
	fresh  bool          // low has changed since the last call of Changed
	again  time.Duration // time at which a completed search starts again

	// The fields below are used to withdraw the suspicion of a black hole.
	before  uint16 // size before the suspicion; 0: none, or another timeout or the result of a probe has followed
	carried bool   // the path has carried packets of that size
	stalled bool   // nothing has been delivered since the suspicion
	down    bool   // packets of the size after the fallback were lost as well
}

// New returns a search that starts at the base size (RFC 4821 section 7.2). most is the limit for packets. headers is the length
// of the IP and TCP headers without options. ipv6 selects the minimum of IPv6.
func New(c Config, most, headers int, ipv6 bool) Search {
	s := Search{
		most: size(most), high: size(most), top: true,
		base:      size(orDefault(c.BaseMSS, DefaultBaseMSS) + headers),
		floor:     size(orDefault(c.Floor, DefaultFloor) + headers),
		threshold: size(orDefault(c.Threshold, DefaultThreshold)),
		interval:  orDefault(c.Interval, DefaultInterval),
	}
	if ipv6 {
		s.base, s.floor = max(s.base, minPacket6), max(s.floor, minPacket6)
	}
	s.base = max(s.base, s.floor)
	s.low = min(s.base, s.most)
	return s
}

func size(n int) uint16 { return uint16(min(max(n, 1), maxPacket)) }

// Resume continues with the result of another connection.
func (s *Search) Resume(r Result) {
	s.low, s.high, s.again = min(r.Low, s.most), min(r.High, s.most), r.Again
	s.high = max(s.high, s.low)
	s.top = false
}

// Size returns the size of packets that are no probes.
func (s *Search) Size() int { return int(s.low) }

// common are sizes that many paths have: the minimum of IPv6, Ethernet with and without tunnels, and large frames. Probing them
// first finds the exact size sooner than halving.
var common = [...]uint16{1280, 1400, 1420, 1450, 1460, 1476, 1480, 1492, 1500, 4352, 8900, 9000}

// Next returns the size of the probe to send now, or 0 if there is none: a probe is in flight, or the search is complete.
func (s *Search) Next(now time.Duration) int {
	if s.probe != 0 {
		return 0
	}
	if s.complete() {
		if now < s.again || s.most-s.low < s.threshold {
			return 0
		}
		s.high, s.top, s.losses = s.most, true, 0
	}
	if s.top {
		return int(s.high)
	}
	first, n := 0, 0
	for i, c := range common {
		if c <= s.high && int(c) >= int(s.low)+int(s.threshold) {
			if n == 0 {
				first = i
			}
			n++
		}
	}
	if n > 0 {
		return int(common[first+n/2])
	}
	return int(s.low + (s.high-s.low+1)/2)
}

// complete reports whether the sizes that are left are not worth a probe.
func (s *Search) complete() bool { return s.high-s.low < s.threshold }

// Sent records that a probe of the size that Next returned was sent.
func (s *Search) Sent(size int) { s.probe = uint16(size) }

// Delivered records that the probe has arrived (RFC 4821 section 7.6.1).
func (s *Search) Delivered(now time.Duration) {
	size := min(s.probe, s.most)
	s.probe, s.losses, s.top, s.holed, s.before = 0, 0, false, false, 0
	if size > s.low {
		s.low, s.fresh = size, true
		s.high = max(s.high, size)
	}
	s.rest(now)
}

// Lost records that the probe and nothing else was lost (RFC 4821 section 7.6.2).
func (s *Search) Lost(now time.Duration) {
	size := s.probe
	s.probe = 0
	if size > s.high || size <= s.low { // a router has reported a smaller size meanwhile
		return
	}
	if s.losses++; s.losses < maxProbes && !s.holed {
		return
	}
	s.high, s.losses, s.top, s.holed, s.before, s.fresh = size-1, 0, false, false, 0, true
	s.rest(now)
}

// Inconclusive records that other packets were lost with the probe, or that it is unknown whether the probe arrived. The same
// size is tried again (RFC 4821 section 7.6.4).
func (s *Search) Inconclusive() { s.probe = 0 }

// rest sets the time of the next search if this one is complete.
func (s *Search) rest(now time.Duration) {
	if s.complete() {
		s.again = now + s.interval
		s.fresh = true
	}
}

// Fallback returns the size that FullStop selects.
func (s *Search) Fallback() int {
	if s.low > s.base {
		return int(s.base)
	}
	return int(min(s.low, max(s.low/2, s.floor)))
}

// BlackHole prepares a new search for FullStop: it assumes that packets have had the largest size until now. It returns false if
// that is not above the base size.
func (s *Search) BlackHole() bool {
	s.low = s.most
	return s.low > s.base
}

// FullStop records that repeated timeouts indicate a black hole (RFC 4821 section 7.7). The size falls to the base, or is halved.
// carried is true if the path has carried packets of the present size before. Then an outage is as likely as a black hole. FullStop
// is no result for later connections, because only a probe distinguishes the two.
func (s *Search) FullStop(carried bool) {
	if !s.stalled {
		s.before, s.carried, s.stalled = s.low, carried, true
	}
	s.low = uint16(s.Fallback())
	s.probe, s.losses, s.top, s.holed = 0, 0, true, !s.carried
	if s.complete() {
		s.high = s.most
	}
}

// TimedOut records a timeout. It is called before FullStop.
func (s *Search) TimedOut() {
	s.down = s.stalled
	if !s.stalled {
		s.before = 0
	}
}

// Passed records that data was delivered. The size before FullStop is used again in two cases: smaller packets were lost as well, so
// the path was down; or spurious is true, because nothing was lost. Passed reports whether the size has changed.
func (s *Search) Passed(spurious bool) bool {
	withdraw := s.before != 0 && (spurious || s.down && s.carried)
	s.stalled, s.down = false, false
	if withdraw {
		s.low = min(s.before, s.most)
		s.high, s.top, s.holed, s.losses, s.before = max(s.high, s.low), true, false, 0, 0
	}
	return withdraw
}

// Limit sets the limit for packets. If it rises, the larger sizes are searched at once.
func (s *Search) Limit(n int) {
	most := size(n)
	switch {
	case most > s.most:
		s.high, s.top, s.losses = most, true, 0
	case most < s.high:
		s.high, s.losses = most, 0
	}
	s.most, s.low = most, min(s.low, most)
}

// Changed returns the result for later connections if it has changed since the last call. It returns a Low of 0 if the path
// carries the largest size, so that there is nothing to remember.
func (s *Search) Changed() (r Result, ok bool) {
	if !s.fresh {
		return r, false
	}
	s.fresh = false
	if s.low < s.most {
		r = Result{Low: s.low, High: s.high, Again: s.again}
	}
	return r, true
}
