package tcp

// The receive window: what is offered to the peer (RFC 9293 section 3.8.6.2.2),
// and how it grows.
//
// The right edge never moves left (SHLD-14), although the window field cannot
// express every edge once it is scaled: an edge that was told is rounded up, a
// new one down (RFC 7323 section 2.4).
//
// The buffer starts small and follows the program: if in one round trip the
// program has read d bytes, the peer needs a window of 2d to go on while the
// acknowledgment travels, and more while it is still speeding up (dynamic right
// sizing; Fisk and Feng, 2001).

import "loam/wire"

// tuning is the measurement of one round trip.
type tuning struct {
	since Time
	rtt   Time   // as the receiver sees it; 0: only SRTT is known
	off   uint32 // what the program had read by then, of its offset the low half
	last  uint32 // what it read in the round trip before
}

// freeEdge is the edge that the buffer allows now, and at least the one promised.
func (c *Conn) freeEdge() Seq {
	if c.rcv.finSeen || !c.state.synchronized() {
		return c.rcv.edge
	}
	unread := 0
	if !c.gone {
		unread = int(c.rcv.off - c.in.Consumed())
	}
	return maxSeq(c.rcv.edge, c.rcv.nxt.Add(max(0, int(c.rcv.size)-unread)))
}

// firstWindow is the window of a SYN.
func (r *receiver) firstWindow() int { return int(min(r.size, maxUnscaled)) }

// putWindow fills out the window field and moves the right edge: by no less than
// a segment or half of the buffer (silly window avoidance).
func (c *Conn) putWindow(out *wire.TCP) {
	r := &c.rcv
	promised := uint32(max(0, r.edge.Sub(r.nxt)))
	wnd := promised
	if edge := c.freeEdge(); edge.Sub(r.edge) >= min(int(r.size/2), int(c.snd.advMSS)) {
		wnd = uint32(edge.Sub(r.nxt))
	}
	field := min(wnd>>r.scale, maxUnscaled)
	if field<<r.scale < promised && field < maxUnscaled {
		field++
	}
	out.Window = uint16(field)
	r.edge = maxSeq(r.edge, r.nxt.Add(int(field<<r.scale)))
}

// Consumed tells that Incoming.Consumed has moved. The peer is told of the space
// at once if it may be waiting for it: if its window has at least doubled, or
// half of the buffer has become free.
func (c *Conn) Consumed(now Time) {
	if !c.state.receives() || c.gone {
		return
	}
	c.tuneWindow(now)
	r := &c.rcv
	more, has := c.freeEdge().Sub(r.edge), r.edge.Sub(r.nxt)
	if more >= int(r.size/2) || more >= 2*int(c.snd.advMSS) && more >= has {
		c.todo |= todoAck
	}
}

// tuneWindow enlarges the buffer once a round trip.
func (c *Conn) tuneWindow(now Time) {
	t := &c.rcv.tune
	round := t.rtt
	if round == 0 {
		round = c.rtt.srtt
	}
	if round == 0 || c.rcv.size >= c.rcv.max || t.since != 0 && now-t.since < round {
		return
	}
	consumed := uint32(c.in.Consumed())
	if t.since == 0 {
		t.since, t.off = now, consumed
		return
	}
	read := consumed - t.off
	if read > t.last {
		want := 2*read + 2*(read-t.last)
		c.rcv.size = min(max(c.rcv.size, want), c.rcv.max)
		t.last = read
	}
	t.since, t.off = now, consumed
}

// measureRTT measures the round trip as the receiver sees it: a full segment
// echoes the timestamp of the acknowledgment that let it go.
func (c *Conn) measureRTT(now Time, seg *Segment, n int) {
	if !c.ts.on || c.rcv.size >= c.rcv.max || n < int(c.rcv.mss) || seg.TSEcr == 0 {
		return
	}
	d := c.ts.since(now, seg.TSEcr)
	t := &c.rcv.tune
	switch {
	case d == 0:
	case t.rtt == 0 || d < t.rtt:
		t.rtt = d
	default:
		t.rtt += (d - t.rtt) / 8
	}
}

// SetMaxReceiveBuffer changes how far the receive window may grow. Space that
// the peer has been told of stays promised.
func (c *Conn) SetMaxReceiveBuffer(now Time, n int) {
	most := uint32(maxUnscaled) << c.rcv.scale
	if c.state == SynSent && c.sent.len() == 0 && c.rcv.scaled {
		c.rcv.scale = scaleFor(uint32(clampBuffer(n, n)))
		most = maxWindow
	}
	c.rcv.max = min(uint32(clampBuffer(n, n)), most)
	c.rcv.size = min(c.rcv.size, c.rcv.max)
}
