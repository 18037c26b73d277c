package tcp

import "loam/stack/tcp/congestion"

// The choice of the next segment to send. Input only changes state; this file turns state into segments, one
// at a time, in this order:
//
//	a reset, and nothing after it
//	the SYN
//	pending duplicate acknowledgments, one by one
//	lost data, as far as the congestion window allows
//	a probe of a larger path MTU, if one is due (mtusearch.go)
//	new data, as far as both windows allow, unless waiting is worthwhile
//	probes
//	an acknowledgment, if no earlier segment has carried it

// action is the reason why a segment is sent.
type action uint8

const (
	nothing action = iota
	reset
	refusal
	opening
	again
	fresh
	mtuProbe
	tailProbe
	poke
	acknowledgment
)

// Pending reports whether Poll has something to send at the time now. Data held back by pacing or by a
// window is not pending. Pending arms the timer for it like Poll, since an owner without room to send does
// not call Poll.
func (c *Conn) Pending(now Time) bool {
	a, _ := c.choose(now)
	return a != nothing
}

// Poll fills out the next segment to send and counts it as sent. It returns false if there is none.
//
// The payload is at most maxPayload bytes or one MSS, whichever is larger. If maxPayload exceeds the MSS,
// several segments may share one frame; all but the last have out.MSS bytes.
func (c *Conn) Poll(now Time, maxPayload int, out *Out) bool {
	c.snd.burst = uint32(max(maxPayload, 0))
	a, n := c.choose(now)
	if a == nothing {
		return false
	}
	*out = Out{}
	out.SrcPort, out.DstPort = c.id.Local.Port(), c.id.Remote.Port()
	switch a {
	case reset, refusal:
		c.sendReset(now, out, a)
	case opening:
		c.sendSYN(now, out)
	case again:
		c.sendAgain(now, out, n)
	case fresh:
		c.sendNew(now, out, n, c.segment())
	case mtuProbe:
		c.sendMTUProbe(now, out, n)
	case tailProbe:
		c.sendTailProbe(now, out)
	case poke:
		c.todo &^= todoPoke
		c.fill(now, out)
		out.Seq = uint32(c.snd.una - 1)
		c.ackSent(false)
	case acknowledgment:
		c.fill(now, out)
		out.Seq = uint32(c.numberForAck())
		c.ackSent(false)
	}
	if c.snd.urgent {
		c.markUrgent(out)
	}
	c.sentSegments(out)
	return true
}

// choose applies the passage of time to the sender and returns the next action and its payload length in
// bytes. If there is none, it arms the timer for data that is held back.
func (c *Conn) choose(now Time) (action, int) {
	c.releasePace(now)
	if c.sent.len() == 0 {
		c.restart(now)
	}
	if c.search != nil {
		c.search.size = c.search.Next(now)
	}
	a, n := c.next()
	if a == nothing && !c.holdBack() {
		c.hold(now)
	}
	return a, n
}

// next returns the next action and its payload length in bytes.
func (c *Conn) next() (action, int) {
	switch {
	case c.state < Established:
		if a := c.nextOpening(); a != nothing || !c.sendsEarly() {
			return a, 0
		}
		return c.nextEarly()
	case c.ack.dups > 0:
		return acknowledgment, 0
	case c.sent.resend > 0 && c.rec.frto != frtoNew:
		if n := c.resendable(); n > 0 && !c.pacingHeld() {
			return again, n
		}
	default:
		probe, hold := c.nextMTUProbe()
		if probe > 0 && !c.pacingHeld() {
			return mtuProbe, probe
		}
		if n, ok := c.sendable(); ok && !hold && (n == 0 || !c.pacingHeld()) {
			return fresh, n
		}
		if c.sent.resend > 0 && !c.pacingHeld() { // there is no new data that could decide F-RTO, so lost data is retransmitted
			if n := c.resendable(); n > 0 {
				return again, n
			}
		}
	}
	switch {
	case c.todo == 0:
		return nothing, 0
	case c.todo&todoRefuse != 0:
		return refusal, 0
	case c.todo&todoProbe != 0 && c.sent.len() > 0:
		return tailProbe, 0
	case c.todo&todoPoke != 0:
		return poke, 0
	case c.todo&todoAck != 0:
		return acknowledgment, 0
	}
	return nothing, 0
}

// nextOpening returns the next action in CLOSED, SYN-SENT and SYN-RECEIVED.
func (c *Conn) nextOpening() action {
	switch {
	case c.todo&todoReset != 0:
		return reset
	case c.todo&todoRefuse != 0:
		return refusal
	case c.state == Closed:
		return nothing
	case c.sent.len() == 0 || c.sent.at(0).resend():
		return opening
	case c.state == SynReceived && c.todo&todoAck != 0:
		return acknowledgment
	}
	return nothing
}

// segment returns the payload of a full segment with the options that it would carry now.
func (c *Conn) segment() int {
	n := int(c.window.MSS)
	if k := c.rcv.blocks(c.ts.on); k > 0 {
		n -= 4 + 8*k
	}
	return n
}

// windowRoom returns the number of bytes by which the peer's window extends beyond SND.NXT.
func (c *Conn) windowRoom() int { return int(c.snd.wnd) - c.flight() }

// congestionRoom returns the number of bytes that the congestion window still allows. If nothing is in flight, it allows at
// least one segment.
func (c *Conn) congestionRoom() int {
	pipe := c.pipe()
	if pipe == 0 {
		return int(max(c.window.Size, c.window.MSS))
	}
	return int(c.window.Size) - pipe
}

// resendable returns the number of bytes of the first lost range that may be sent again now.
func (c *Conn) resendable() int {
	r := c.sent.at(c.sent.firstResend())
	mss := c.segment()
	room := c.congestionRoom()
	if room < min(r.len(), mss) {
		return 0
	}
	n := min(r.len(), room)
	if n < r.len() {
		n -= n % mss
	}
	if end := c.snd.una.Add(int(c.snd.wnd)); end.Less(r.seq.Add(n)) {
		// The peer has shrunk its window (RFC 9293 section 3.8.6). Only the first segment is sent beyond it.
		n = max(end.Sub(r.seq), 0)
		if r.seq == c.snd.una {
			n = max(n, min(r.len(), mss))
		}
	}
	return n
}

// sendable returns the number of bytes of new data that may be sent now. It returns 0 and true for a FIN without data, and
// false if nothing may be sent.
func (c *Conn) sendable() (int, bool) {
	room := c.windowRoom()
	if room <= 0 || c.sent.full() {
		return 0, false
	}
	avail := c.unsent()
	if avail == 0 {
		return 0, c.snd.fin && !c.snd.finSent
	}
	mss, cwnd := c.segment(), c.congestionRoom()
	n := min(avail, room)
	if cwnd < min(n, mss) {
		return 0, false
	}
	n = min(n, cwnd)
	switch {
	case n >= mss:
		if n < avail && c.defers(n) {
			return 0, false
		}
		if n%mss != 0 && (n < avail || !c.tailAllowed()) && !c.snd.force {
			n -= n % mss
		}
		return n, true
	case c.snd.force:
		return n, true
	case n < avail: // silly window avoidance: the usable window is too small (RFC 9293 section 3.8.6.2.1, rule 3)
		return n, n >= int(c.snd.maxWnd/2) && (c.snd.noDelay || c.flight() == 0)
	}
	return n, c.tailAllowed()
}

// tailAllowed reports whether the last bytes written may be sent although they do not fill a segment. Nagle's
// algorithm (RFC 9293 section 3.7.4) forbids it while an earlier small segment is unacknowledged. In
// Minshall's variant, used here, full segments in flight do not count, so the end of a large write need not
// wait.
func (c *Conn) tailAllowed() bool {
	switch {
	case c.snd.fin, c.sendsUrgent():
		return true
	case c.snd.cork, c.snd.more:
		return false
	}
	return c.snd.noDelay || c.snd.small.LessEq(c.snd.una)
}

// defers reports whether to wait until more than n bytes can be sent, because one large frame costs the owner
// less than several small ones. It waits only while acknowledgments are on the way that will open the
// windows, and never for more than a quarter of either window.
func (c *Conn) defers(n int) bool {
	most := c.largestFrame()
	if most <= c.window.MSS || c.sendsUrgent() || c.rec.state != CAOpen || c.flight() == 0 {
		return false
	}
	return n < int(min(most, c.window.Size/4, c.snd.wnd/4))
}

// restart decays the congestion window after an idle period: by half for each RTO, down to the initial window
// (RFC 2861, within the limits of RFC 5681 section 4.1).
func (c *Conn) restart(now Time) {
	idle := now - c.snd.lastSent
	if idle <= c.rtt.rto || c.cc == nil || c.rate != nil || c.unsent() == 0 {
		return
	}
	w := &c.window
	floor := min(c.initialWindow(), w.Size)
	if w.Threshold != congestion.NoThreshold {
		w.Threshold = max(w.Threshold, w.Size/4*3)
	}
	for d := idle; d > c.rtt.rto && w.Size > floor; d -= c.rtt.rto {
		w.Size = max(w.Size/2, floor)
	}
	w.Rate = 0
	c.cc.Restart(w, now, idle)
	c.snd.lastSent = now
}

// resume notifies a Model that data is sent after an idle period, in which the program had nothing to send and nothing was
// in flight (draft-ietf-ccwg-bbr section 5.4.1).
func (c *Conn) resume(now Time) {
	if c.rate != nil && c.rate.limited != 0 && c.pipe() == 0 {
		c.cc.Restart(&c.window, now, now-c.snd.lastSent)
	}
}
