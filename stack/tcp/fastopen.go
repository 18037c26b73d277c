package tcp

// TCP Fast Open (RFC 7413): data in a SYN. The owner makes, checks and stores cookies. A client's SYN carries data only if
// the owner has a cookie of the server. If the server does not acknowledge the data, or if the SYN is lost, the data is sent
// after an ordinary handshake. A server delivers the data of a SYN with a valid cookie at once, and can send before the
// handshake is complete: it is then in SYN-RECEIVED, and SND.UNA stays at the number of the SYN.

import "loam/wire"

// FastOpen is the state of Fast Open of a connection, as far as the owner needs it.
type FastOpen struct {
	Cookie   wire.FastOpenCookie // the cookie that the peer's SYN-ACK contained
	Asked    bool                // our SYN had the option, so that Cookie may be used
	Sent     bool                // our SYN had data
	Repeated bool                // our SYN or SYN-ACK was sent again, without option and data
	SynData  bool                // data of a SYN was acknowledged, by the peer or by this side
	offered  wire.FastOpenCookie // the option of our first SYN or SYN-ACK
	accepted bool                // passive: the connection was opened by a valid cookie
	most     uint16              // the largest payload of our SYN with its options, in bytes; 0: no data
}

// FastOpen returns the state of Fast Open. Its zero value is returned for a connection that does not use it.
func (c *Conn) FastOpen() FastOpen {
	if c.fast == nil {
		return FastOpen{}
	}
	return *c.fast
}

// SetFastOpen adds the option to the first SYN or SYN-ACK, which was not sent yet. If most is not 0, the SYN also carries the
// data written so far, whose size with the options is at most that number of bytes.
func (c *Conn) SetFastOpen(option wire.FastOpenCookie, most int) {
	if c.fast == nil {
		c.fast = new(FastOpen)
	}
	c.fast.offered, c.fast.most = option, uint16(min(most, int(c.snd.pathMSS)))
}

// OpenFast delivers the data of a SYN with a valid cookie, which was given to Accept, and permits sending before the handshake
// is complete (RFC 7413 section 4.2.2). The owner calls it after Accept and after it has set the options, which may limit the window.
func (c *Conn) OpenFast(now Time, syn *Segment) {
	if c.fast == nil {
		c.fast = new(FastOpen)
	}
	c.fast.accepted = true
	if c.cc == nil {
		c.cc = c.cfg.congestion()
	}
	c.window.Size = c.initialWindow()
	c.rcv.edge = c.rcv.nxt.Add(c.rcv.firstWindow())
	if p := syn.Payload; len(p) > 0 {
		c.fast.SynData = true
		c.stats.dataIn++
		c.inOrder(now, syn, p[:min(len(p), c.rcv.edge.Sub(c.rcv.nxt))])
	}
}

// Usable reports whether the program can use the connection: the handshake is complete, or the peer has sent a valid cookie.
func (c *Conn) Usable() bool { return c.state >= Established || c.sendsEarly() }

// sendsEarly reports whether data may be sent although the peer has not acknowledged our SYN-ACK.
func (c *Conn) sendsEarly() bool {
	return c.state == SynReceived && c.fast != nil && c.fast.accepted
}

// nextEarly returns the next action of such a connection when its SYN-ACK need not be sent.
func (c *Conn) nextEarly() (action, int) {
	if n, ok := c.sendable(); ok && (n == 0 || !c.pacingHeld()) {
		return fresh, n
	}
	return nothing, 0
}

// putFastOpen adds the option to the first SYN or SYN-ACK, and data to a SYN.
func (c *Conn) putFastOpen(now Time, out *Out) {
	f := c.fast
	if f == nil {
		return
	}
	out.FastOpen = f.offered
	if c.state != SynSent {
		return
	}
	f.Asked = f.offered.Present()
	n := min(int(f.most)-out.TCPOptions.Len(), int(min(c.snd.end, 1<<16)))
	if n <= 0 {
		return
	}
	f.Sent = true
	out.Len, out.MSS = n, n
	c.sent.push(sent{seq: c.snd.nxt, end: c.snd.nxt.Add(n), at: now, mss: c.snd.mss, sends: 1})
	c.snd.nxt = c.snd.nxt.Add(n)
}

// ackedSYNData handles what is in flight besides our SYN after the peer has acknowledged the SYN. Data that a server has not
// accepted is sent again at once, without a reaction of congestion control (RFC 7413 section 4.2.1).
func (c *Conn) ackedSYNData(now Time, seg *Segment) {
	f := c.fast
	if f == nil {
		return
	}
	if f.Asked {
		f.Cookie = seg.FastOpen
	}
	if c.sent.len() == 0 {
		return
	}
	c.armRTO(now)
	if c.passive {
		return
	}
	if ack := Seq(seg.Ack); c.snd.una.Less(ack) {
		f.SynData = true
		c.acknowledge(&arrival{now: now, seg: seg, before: c.pipe(), oldest: -1, newest: -1}, ack)
	}
	for i := range c.sent.len() {
		c.sent.setFlags(c.sent.at(i), sentLost, 0)
	}
}
