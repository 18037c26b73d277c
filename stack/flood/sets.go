package flood

import (
	"net/netip"
	"slices"
	"time"

	"loam/link"
)

// Sets are the sets of flows of the interfaces that have had a flood of stray segments. They
// contain the connections of a shard, its connections in TIME-WAIT, and the flows of its latest SYN
// cookies. Sets belongs to the shard. The zero value has no set, and its methods then do nothing.
type Sets struct {
	flows   []*link.Flows
	cookies cookies
}

// cookies is a ring of the flows to which the shard has sent its latest SYN cookies. A listener
// keeps no state for them, but the segment that completes the handshake is not stray.
type cookies struct {
	ring []link.Flow // nil until the first cookie
	next int         // position of the oldest cookie, which the next one replaces
}

// maxCookies is the capacity of the ring. The stack lets a shard send that many cookies in 0.8 s,
// and a reply takes a round trip to arrive.
const maxCookies = 8192

// Join adds a set of flows. It passes a callback, add, to the function all, which must
// call the callback for each existing connection.
func (s *Sets) Join(flows *link.Flows, all func(add func(local, remote netip.AddrPort))) {
	for _, f := range s.cookies.ring {
		flows.Add(f)
	}
	all((&Sets{flows: []*link.Flows{flows}}).Add)
	s.flows = append(s.flows, flows)
}

// Leave removes a set, if it has been joined.
func (s *Sets) Leave(flows *link.Flows) {
	s.flows = slices.DeleteFunc(s.flows, func(f *link.Flows) bool { return f == flows })
	if len(s.flows) == 0 {
		*s = Sets{}
	}
}

// Add adds a connection. A segment of a connection that is missing may be dropped.
func (s *Sets) Add(local, remote netip.AddrPort) {
	if len(s.flows) > 0 {
		s.each(local, remote, (*link.Flows).Add)
	}
}

// Remove removes a connection that was added, or existed when its sets were joined.
func (s *Sets) Remove(local, remote netip.AddrPort) {
	if len(s.flows) > 0 {
		s.each(local, remote, (*link.Flows).Remove)
	}
}

func (s *Sets) each(local, remote netip.AddrPort, do func(*link.Flows, link.Flow)) {
	if f, ok := link.FlowOf(remote, local); ok {
		for _, flows := range s.flows {
			do(flows, f)
		}
	}
}

// AddCookie adds the flow of a SYN that is answered with a cookie, in place of the oldest one.
func (s *Sets) AddCookie(local, remote netip.AddrPort) {
	f, ok := link.FlowOf(remote, local)
	if len(s.flows) == 0 || !ok {
		return
	}
	c := &s.cookies
	if c.ring == nil {
		c.ring = make([]link.Flow, 0, maxCookies)
	}
	for _, flows := range s.flows {
		flows.Add(f)
		if len(c.ring) == maxCookies {
			flows.Remove(c.ring[c.next])
		}
	}
	if len(c.ring) < maxCookies {
		c.ring = append(c.ring, f)
		return
	}
	c.ring[c.next] = f
	c.next = (c.next + 1) % maxCookies
}

// Strays is the part of a shard that deals with stray segments, which belong to no connection. It counts them, and
// contains the sets of flows that are not stray. The zero value is empty.
type Strays struct {
	Sets
	began time.Duration // time at which the first counted segment arrived
	count int           // number of stray segments since the time began
}

// Count counts a stray segment, and reports it to t, the thinning of the interface. It returns true if CensusFrames/n
// stray segments have arrived within 0.2 s: the part of a flood that one of n shards receives.
func (s *Strays) Count(now time.Duration, n int, t *Thinning) bool {
	if t.Active() {
		t.Delivered(1)
	}
	if s.count == 0 {
		s.began = now
	}
	if s.count++; s.count < CensusFrames/n {
		return false
	}
	s.count = 0
	return now-s.began <= censusSpan
}
