package tcp

import "time"

// Detection of black holes: paths that drop large packets while no router reports it (RFC 2923 section 2.1).
// Small packets pass, so the connection opens, and then stalls at the first full segments.
//
// After three consecutive timeouts of one segment, a black hole is suspected, and lost data is retransmitted
// in smaller segments (RFC 4821 section 7.7). After one more timeout the smallest size is used. If the path
// was in fact down, this only costs extra headers. The full size is tried again after ten minutes, as for a
// reported path MTU (RFC 1191 section 6.3). Sizes in between are not searched for.

const (
	holeTimeouts = 3
	holeLifetime = 10 // time in minutes after which the full size is tried again
)

// Payload sizes without options that are tried, in bytes. Every host accepts the smallest: 536 bytes for IPv4 (RFC 9293
// section 3.7.1), and the payload for a link with an MTU of 1280 for IPv6 (RFC 8200 section 5).
const (
	holeMSS4, leastHoleMSS4 = 1024, defaultMSS4
	holeMSS6                = defaultMSS6
)

// suspectHole is called when the retransmission timer of the first segment in flight has expired.
func (c *Conn) suspectHole(now Time) {
	switch {
	case c.state < Established || int(c.snd.retries)+1 < holeTimeouts,
		c.snd.wnd == 0,     // the peer accepts no data, so a missing acknowledgment proves nothing
		c.soft != finished: // an error such as a missing route explains the timeout
		return
	}
	size := holeMSS4
	switch {
	case c.id.Remote.Addr().Is6() && !c.id.Remote.Addr().Is4In6():
		size = holeMSS6
	case c.snd.holeMSS == holeMSS4:
		size = leastHoleMSS4
	}
	if r := c.sent.at(0); int(r.mss) <= size || r.payload() <= size {
		return
	}
	c.snd.holeMSS, c.snd.holeAt = uint16(size), minutes(now)
	c.SetMSS(now, int(c.snd.pathMSS))
}

// forgetHole tries the full size again after holeLifetime.
func (c *Conn) forgetHole(now Time) {
	if minutes(now)-c.snd.holeAt >= holeLifetime {
		c.snd.holeMSS = 0
		c.updateMSS()
	}
}

// minutes returns the time in minutes modulo 256. A connection that is silent for hours may therefore
// remember a hole for longer.
func minutes(now Time) uint8 { return uint8(now / time.Minute) }
