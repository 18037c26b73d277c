package tcp

import "time"

// A path that drops large packets and has no router tell (RFC 2923 section 2.1): a black
// hole. Small packets pass, so the connection is opened, and stalls with the first full
// segments.
//
// After three timeouts in a row for one segment the path is suspected, and what is lost is
// sent again in smaller ones (RFC 4821 section 7.7); after the next in the smallest. If the
// path was down in truth, that costs headers. Ten minutes later the full size is tried
// again, as for paths of which a router has told (RFC 1191 section 6.3). Sizes in between
// are not looked for.

const (
	holeTimeouts = 3
	holeLifetime = 10 // minutes
)

// Payloads without options that are tried. Every host takes the least: it is 536 bytes for
// IPv4 (RFC 9293 section 3.7.1), and what a link of 1280 bytes carries for IPv6 (RFC 8200
// section 5).
const (
	holeMSS4, leastHoleMSS4 = 1024, defaultMSS4
	holeMSS6                = defaultMSS6
)

// suspectHole is called when the first segment in flight has timed out.
func (c *Conn) suspectHole(now Time) {
	switch {
	case c.state < Established || int(c.snd.retries)+1 < holeTimeouts,
		c.snd.wnd == 0,     // the peer does not take anything
		c.soft != finished: // it is known why nothing arrives: there is no way
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

// forgetHole tries the full size again when the time has come.
func (c *Conn) forgetHole(now Time) {
	if minutes(now)-c.snd.holeAt >= holeLifetime {
		c.snd.holeMSS = 0
		c.updateMSS()
	}
}

// minutes is the time in minutes, as far as a byte goes: a connection that says nothing for
// hours may remember a hole for longer.
func minutes(now Time) uint8 { return uint8(now / time.Minute) }
