package tcp

import (
	"net/netip"

	"loam/stack/plpmtud"
	"loam/wire"
)

// Path MTU discovery without ICMP messages (RFC 4821): package plpmtud selects the sizes, and this file sends the probes.
//
// A black hole is a path that drops large packets while no router reports it (RFC 2923 section 2.1). Small packets pass, so the
// connection opens, and then stalls at the first full segments. After three consecutive timeouts of one segment a black hole is
// suspected, and lost data is retransmitted in smaller segments. Two timeouts are enough if the peer has never acknowledged a
// segment of that size. The suspicion is withdrawn at the next acknowledgment if smaller segments were lost too, or if nothing was
// lost after all. Otherwise the first probe decides. Until then, a false suspicion costs extra headers.
//
// A probe is one segment of new data, larger than the others. Enough data follows it to reveal its loss. If nothing else is lost,
// the loss is no sign of congestion, and the data of the probe is sent again in segments of the usual size.

// search is the state of a connection that searches for the path MTU.
type search struct {
	plpmtud.Search
	start, end Seq // sequence numbers of the probe in flight; equal if there is none
	size       int // size of the next probe; 0: none is due
}

// Timeouts of one segment after which a black hole is suspected. The second number is for sizes that were never acknowledged.
const holeTimeouts, newHoleTimeouts = 3, 2 // R1 of RFC 9293 section 3.8.3 is at least 3

// HeadersLen returns the length of the IP and TCP headers of segments to a host, in bytes and without options.
func HeadersLen(a netip.Addr) int {
	if a.Is4() || a.Is4In6() {
		return wire.IPv4MinLen + wire.TCPMinLen
	}
	return wire.IPv6Len + wire.TCPMinLen
}

func (c *Conn) headers() int { return HeadersLen(c.id.Remote.Addr()) }

// searches returns the settings of searches.
func (c *Conn) searches() plpmtud.Config {
	if c.cfg.Paths != nil {
		return c.cfg.Paths.Searches()
	}
	return c.cfg.Probing
}

// newSearch starts a search.
func (c *Conn) newSearch(s plpmtud.Config) *search {
	h := c.headers()
	return &search{Search: plpmtud.New(s, int(min(c.snd.pathMSS, c.snd.peerMSS))+h, h, h == wire.IPv6Len+wire.TCPMinLen)}
}

// initSearch starts a search with a new connection if the settings require it, or if an earlier one has found a black hole.
func (c *Conn) initSearch(now Time) {
	s := c.searches()
	if s.Mode == plpmtud.Off || c.out == nil { // the answer to a SYN with a cookie sends no data
		return
	}
	if c.cfg.Paths != nil {
		if r, ok := c.cfg.Paths.Found(now, c.id.Remote.Addr().WithZone("")); ok {
			c.search = c.newSearch(s)
			c.search.Resume(r)
			return
		}
	}
	if s.Mode == plpmtud.Always {
		c.search = c.newSearch(s)
	}
}

// suspectHole is called when the retransmission timer of the first segment in flight has expired.
func (c *Conn) suspectHole(now Time) {
	if c.search != nil {
		c.search.TimedOut()
	}
	r, limit := c.sent.at(0), holeTimeouts
	if r.mss > c.snd.proven {
		limit = newHoleTimeouts
	}
	switch {
	case c.state < Established || int(c.snd.retries)+1 < limit,
		c.snd.wnd == 0,     // the peer accepts no data, so a missing acknowledgment proves nothing
		c.soft != finished: // an error such as a missing route explains the timeout
		return
	}
	s := c.search
	if s == nil {
		config := c.searches()
		if config.Mode == plpmtud.Off {
			return
		}
		s = c.newSearch(config)
		if !s.BlackHole() {
			return
		}
	}
	if most := s.Fallback() - c.headers(); int(r.mss) <= most || r.payload() <= most {
		return
	}
	c.search = s
	c.count(BlackHoles)
	c.dropMTUProbe()
	s.FullStop(r.mss <= c.snd.proven)
	c.SetMSS(now, int(c.snd.pathMSS))
}

// nextMTUProbe returns the payload of the probe to send now. If the congestion window has no room for it yet, hold is true: other
// new data waits, because it would use up the room again and again (RFC 4821 section 7.4).
func (c *Conn) nextMTUProbe() (n int, hold bool) {
	s := c.search
	if s == nil || s.size == 0 || c.rec.state != CAOpen || c.sent.sacked+c.sent.lost+c.sent.retrans > 0 || c.probe.on ||
		c.snd.urgent || c.sendsUrgent() || c.sent.full() || c.rcv.gaps() || !c.rcv.dup.Empty() {
		return 0, false
	}
	n = s.size - c.headers()
	if c.ts.on {
		n -= timestampsLen
	}
	need := n + dupThresh*c.segment() // the segments after the probe reveal its loss
	if n <= c.segment() || c.unsent() < need || c.windowRoom() < need || int(c.window.Size) < need {
		return 0, false
	}
	if c.congestionRoom() < n {
		return 0, true
	}
	return n, false
}

// sendMTUProbe sends n bytes of new data in one segment.
func (c *Conn) sendMTUProbe(now Time, out *Out, n int) {
	s := c.search
	s.start, s.end = c.snd.nxt, c.snd.nxt.Add(n)
	s.Sent(s.size)
	c.sendNew(now, out, n, n)
}

// dropMTUProbe forgets the probe in flight: it is unknown whether it arrives.
func (c *Conn) dropMTUProbe() {
	if s := c.search; s != nil && s.start != s.end {
		s.start = s.end
		s.Inconclusive()
	}
}

// isMTUProbe reports whether a range is the probe in flight.
func (c *Conn) isMTUProbe(r *sent) bool {
	s := c.search
	return s != nil && s.start != s.end && r.seq == s.start && r.end == s.end
}

// mtuProbeLost reports whether the probe is all that is lost, and records that. Its loss is then no sign of congestion.
func (c *Conn) mtuProbeLost(now Time) bool {
	s := c.search
	if s == nil || s.start == s.end || int(c.sent.lost) != s.end.Sub(s.start) || c.sent.resend != c.sent.lost || !c.isMTUProbe(c.sent.at(c.sent.firstResend())) {
		return false
	}
	c.count(MTUProbesLost)
	s.start = s.end
	s.Lost(now)
	return true
}

// searchAcked records the cumulative acknowledgment of a probe, and stores a new result for later connections.
func (c *Conn) searchAcked(now Time) {
	s := c.search
	if s.start != s.end && s.end.LessEq(c.snd.una) {
		c.count(MTUProbes)
		s.start = s.end
		s.Delivered(now)
		c.updateMSS()
	}
	c.searchPassed(false)
	if r, ok := s.Changed(); ok && c.cfg.Paths != nil {
		c.cfg.Paths.Store(now, c.id.Remote.Addr().WithZone(""), r)
	}
}

// searchPassed records that data was delivered. spurious is true if the timeouts before were unnecessary.
func (c *Conn) searchPassed(spurious bool) {
	if c.search != nil && c.search.Passed(spurious) {
		c.updateMSS()
	}
}
