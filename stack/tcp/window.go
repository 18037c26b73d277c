package tcp

// The receive window: the window offered to the peer (RFC 9293 section 3.8.6.2.2), and its growth.
//
// The right edge never moves left (SHLD-14), although a scaled window field cannot express every edge. An
// edge already announced is rounded up, a new edge is rounded down (RFC 7323 section 2.4).
//
// The buffer starts small and follows the program (dynamic right-sizing; Fisk and Feng, 2001). If the program
// has read d bytes in one round trip, the peer needs a window of 2d to continue while the acknowledgment
// travels, and more while it is still speeding up.
//
// Data after a gap also occupies the buffer for a round trip, and twice as much if the peer speeds up.
// Without counting it, the window of a long path with loss would be one round trip late. It is counted up to
// 16 times the bytes that the program has read in a round trip. A peer that only sends data that cannot be
// read therefore gets no memory.

import (
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// tuning holds the measurement of one round trip.
type tuning struct {
	since Time
	rtt   Time   // round trip time as measured by the receiver; 0: only SRTT is known
	off   uint32 // lower half of the offset up to which the program had read at the time since
	last  uint32 // number of bytes that the program read in the previous round trip
}

// freeEdge returns the right edge that the buffer allows now, at least the announced one.
func (c *Conn) freeEdge() Seq {
	if c.rcv.finSeen || !c.state.synchronized() {
		return c.rcv.edge
	}
	unread := 0
	if !c.gone {
		unread = int(c.rcv.off - c.in.Consumed())
	}
	return sequence.Max(c.rcv.edge, c.rcv.nxt.Add(max(0, int(c.rcv.size)-unread)))
}

// firstWindow returns the window of a SYN in bytes.
func (r *receiver) firstWindow() int { return int(min(r.size, maxUnscaled)) }

// putWindow fills out the window field and moves the right edge. The edge moves only if it gains at least a
// segment or half of the buffer (silly window avoidance).
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
	r.edge = sequence.Max(r.edge, r.nxt.Add(int(field<<r.scale)))
}

// Consumed reports that the program has read, so that Incoming.Consumed has advanced. A window update is sent at once if the
// peer may be waiting for it: if its window has at least doubled, or half of the buffer has become free. A delayed
// acknowledgment may also be sent.
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
	if c.AcksOnRead() && c.in.Consumed() == c.rcv.off {
		c.todo |= todoAck
	}
}

// tuneWindow enlarges the buffer, at most once per round trip.
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
	read, behind := consumed-t.off, c.rcv.behindGaps()
	if read > t.last || behind > 0 {
		most := max(read, t.last)
		want := 2*read + 2*(most-t.last) + min(2*behind, 16*most)
		c.rcv.size = min(max(c.rcv.size, want), c.rcv.max)
		t.last = most
	}
	t.since, t.off = now, consumed
}

// behindGaps returns the distance from RCV.NXT to the end of the last range after a gap.
func (r *receiver) behindGaps() uint32 {
	if !r.gaps() {
		return 0
	}
	return uint32(r.behind.Ranges[len(r.behind.Ranges)-1].To.Sub(r.nxt))
}

// measureRTT measures the round trip as seen by the receiver: a full segment echoes the timestamp of the
// acknowledgment that allowed it to be sent.
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

// SetMaxReceiveBuffer changes the limit of the receive window in bytes. Window space already announced
// remains valid.
func (c *Conn) SetMaxReceiveBuffer(now Time, n int) {
	most := uint32(maxUnscaled) << c.rcv.scale
	if c.state == SynSent && c.sent.len() == 0 && c.rcv.scaled {
		c.rcv.scale = scaleFor(uint32(clampBuffer(n, n)))
		most = maxWindow
	}
	c.rcv.max = min(uint32(clampBuffer(n, n)), most)
	c.rcv.size = min(c.rcv.size, c.rcv.max)
}
