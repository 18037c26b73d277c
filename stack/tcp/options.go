package tcp

import "loam/wire"

// Options negotiated in SYNs: segment size (RFC 9293 section 3.7.1), window scale and timestamps (RFC 7323),
// selective acknowledgments (RFC 2018). An option is used if both SYNs carry it. The segment size is an
// exception, since it has a default.

const (
	// Segment sizes for a peer whose SYN has no MSS option, for IPv4 and IPv6 (RFC 9293 MUST-15).
	defaultMSS4, defaultMSS6 = 536, 1220

	// minMSS is the minimum to which a peer or an ICMP message can reduce the segment size. With 40 bytes of
	// options, 48 bytes of payload remain. Without a bound, a peer could make us send and record single
	// bytes.
	minMSS = 88

	timestampsLen = 12
)

// offer fills out the options of our SYN, or of our SYN-ACK once the peer's options are known.
func (c *Conn) offer(now Time, out *wire.TCPOptions) {
	out.MSS = c.snd.advMSS
	if c.rcv.scaled {
		out.HasWindowScale, out.WindowScale = true, c.rcv.scale
	}
	out.SACKPermitted = c.rcv.sackOK
	if c.ts.on {
		out.HasTimestamps = true
		out.TSVal, out.TSEcr = c.ts.clock(now), c.ts.recent
	}
}

// propose initializes the options that our own SYN will offer.
func (c *Conn) propose(mss int) {
	c.snd.pathMSS = uint16(min(max(mss, minMSS), 1<<16-1))
	c.snd.advMSS = c.snd.pathMSS
	c.snd.peerMSS = c.snd.pathMSS
	c.snd.mss = c.snd.pathMSS
	c.rcv.mss = min(c.snd.advMSS, defaultMSS4) // assumed segment size of the peer until a larger segment arrives
	c.rcv.size = uint32(c.cfg.receiveBuffer())
	c.rcv.max = uint32(c.cfg.maxReceiveBuffer())
	c.rcv.scaled = !c.cfg.NoWindowScale
	if c.rcv.scaled {
		c.rcv.scale = scaleFor(c.rcv.max)
	}
	c.rcv.sackOK = !c.cfg.NoSACK
	c.ts.on = !c.cfg.NoTimestamps
}

// agree applies the options of the peer's SYN.
func (c *Conn) agree(now Time, syn *Segment) {
	c.snd.peerMSS = defaultMSS4
	if c.id.Remote.Addr().Is6() {
		c.snd.peerMSS = defaultMSS6
	}
	if syn.MSS != 0 {
		c.snd.peerMSS = max(syn.MSS, minMSS)
	}
	c.rcv.scaled = c.rcv.scaled && syn.HasWindowScale
	if c.rcv.scaled {
		c.snd.scale = min(syn.WindowScale, wire.MaxWindowScale)
	} else {
		c.rcv.scale = 0
		c.rcv.max = min(c.rcv.max, maxUnscaled)
		c.rcv.size = min(c.rcv.size, maxUnscaled)
	}
	c.rcv.sackOK = c.rcv.sackOK && syn.SACKPermitted
	c.ts.on = c.ts.on && syn.HasTimestamps
	if c.ts.on {
		c.ts.remember(now, syn.TSVal)
	}
	c.updateMSS()
}

// updateMSS recomputes the segment size after the limit of the path or of the peer has changed.
func (c *Conn) updateMSS() {
	c.snd.mss = min(c.snd.pathMSS, c.snd.peerMSS)
	if s := c.search; s != nil {
		s.Limit(int(c.snd.mss) + c.headers())
		c.snd.mss = uint16(max(s.Size()-c.headers(), minMSS))
	}
	c.window.MSS = uint32(c.snd.mss)
	if c.ts.on {
		c.window.MSS -= timestampsLen
	}
}

// scaleFor returns the smallest scale that can express a window of n bytes.
func scaleFor(n uint32) uint8 {
	var scale uint8
	for scale < wire.MaxWindowScale && n>>scale > maxUnscaled {
		scale++
	}
	return scale
}
