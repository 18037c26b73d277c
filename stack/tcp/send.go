package tcp

// Building segments: the functions that fill out an Out for Poll.

import (
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// fill sets the fields that all segments of a synchronized connection have in common.
func (c *Conn) fill(now Time, out *Out) {
	out.Ack = uint32(c.rcv.nxt)
	out.Flags = wire.ACK
	if c.ecn.echo {
		out.Flags |= wire.ECE
	}
	c.putWindow(&out.TCP)
	c.putTimestamps(now, out)
	if n := c.rcv.blocks(c.ts.on); n > 0 {
		c.rcv.putSACK(&out.TCPOptions, n)
	}
}

// numberForAck returns the sequence number for a segment without data: SND.NXT. If the peer has shrunk its window below
// SND.NXT, it returns the right edge of the window, so that the peer accepts the segment.
func (c *Conn) numberForAck() Seq {
	if c.state == SynReceived {
		return c.snd.nxt // the number of a SYN does not depend on the window
	}
	end := c.snd.una.Add(int(c.snd.wnd))
	return sequence.Min(c.snd.nxt, end)
}

// sendSYN sends or retransmits the SYN or SYN-ACK.
func (c *Conn) sendSYN(now Time, out *Out) {
	first := c.sent.len() == 0
	if first {
		c.sent.push(sent{seq: c.snd.iss, end: c.snd.iss + 1, mss: c.snd.mss, flags: sentSYN})
		c.snd.nxt = c.snd.iss + 1
		c.rec.stamp = c.ts.clock(now)
		if c.rcv.edge == c.rcv.nxt && !c.sendsEarly() {
			c.rcv.edge = c.rcv.nxt.Add(c.rcv.firstWindow())
		}
	} else {
		c.stats.retransmits++
		c.count(Retransmits)
		if c.fast != nil {
			c.fast.Repeated = true
		}
	}
	r := c.sent.at(0)
	c.sent.setFlags(r, 0, sentLost)
	r.at = now
	r.sends = min(r.sends, 254) + 1
	out.Seq = uint32(c.snd.iss)
	out.Flags = wire.SYN
	out.Window = uint16(min(c.rcv.edge.Sub(c.rcv.nxt), maxUnscaled)) // the window of a SYN is never scaled
	if c.state == SynReceived {
		out.Flags |= wire.ACK
		out.Ack = uint32(c.rcv.nxt)
		c.ackSent(false)
	}
	out.Flags |= c.ecn.synFlags(c.state == SynReceived)
	c.offer(now, &out.TCPOptions)
	if first {
		c.putFastOpen(now, out)
	}
	if !c.timers.armed(timerRTO) {
		c.armRTO(now)
	}
}

// sendReset sends a reset, which either ends this connection or rejects one received segment.
func (c *Conn) sendReset(now Time, out *Out, a action) {
	c.count(ResetsOut)
	if a == refusal {
		c.todo &^= todoRefuse
		out.Seq = uint32(c.snd.refuse)
		out.Flags = wire.RST
		return
	}
	c.todo &^= todoReset
	out.Seq = uint32(c.numberForAck())
	out.Ack = uint32(c.rcv.nxt)
	out.Flags = wire.RST | wire.ACK
	c.putTimestamps(now, out) // a reset should have timestamps if they were negotiated (RFC 7323 section 3.2)
}

// putTimestamps adds the timestamps option if it was negotiated.
func (c *Conn) putTimestamps(now Time, out *Out) {
	if c.ts.on {
		out.HasTimestamps = true
		out.TSVal, out.TSEcr = c.ts.clock(now), c.ts.recent
	}
}

// sendNew sends n bytes of new data in segments of mss bytes, the FIN, or both.
func (c *Conn) sendNew(now Time, out *Out, n, mss int) {
	avail := c.unsent()
	n = c.frame(n, mss)
	c.fill(now, out)
	out.Seq = uint32(c.snd.nxt)
	out.Off, out.Len, out.MSS = c.offset(c.snd.nxt), n, mss
	r := sent{seq: c.snd.nxt, end: c.snd.nxt.Add(n), at: now, mss: uint16(mss), sends: 1}
	if n == avail {
		if n > 0 {
			out.Flags |= wire.PSH
		}
		if c.snd.fin && c.windowRoom() > n {
			out.Flags |= wire.FIN
			r.end++
			r.flags = sentFIN
			c.snd.finSent = true
		}
	}
	if n%mss != 0 {
		c.snd.small = r.end
	}
	if c.sent.len() == 0 {
		c.snd.progress = now
	}
	c.resume(now)
	c.sent.push(r)
	c.snd.nxt = r.end
	c.sampleSent(now, c.sent.len()-1, r.len())
	c.ecn.mark(out)
	c.sentData(now, n)
	c.armProbe(now)
	c.validate(c.limited())
}

// frame returns how many of n bytes are sent in one frame: at most the owner's limit, and at most half of either window. A
// frame may be lost as a whole. If it contained everything in flight, no later segment would reveal the loss.
func (c *Conn) frame(n, mss int) int {
	if c.snd.urgent {
		return min(n, mss)
	}
	most := max(min(int(c.largestFrame()), int(c.window.Size/2), int(c.snd.maxWnd/2)), mss)
	if n <= most {
		return n
	}
	return most - most%mss
}

// limited reports whether data waits only because of the congestion window.
func (c *Conn) limited() bool {
	want := min(c.unsent(), c.windowRoom())
	return want > 0 && c.congestionRoom() < min(want, int(max(c.window.MSS, min(c.largestFrame(), c.window.Size/4))))
}

// sendAgain retransmits the first n bytes of the first lost range, together with following lost ranges that
// fit.
func (c *Conn) sendAgain(now Time, out *Out, n int) {
	mss := c.segment()
	n = c.frame(n, mss)
	i := c.sent.firstResend()
	r := c.sent.at(i)
	room := c.congestionRoom()
	for r.len() < min(mss, room) && i+1 < c.sent.len() && c.sent.at(i+1).resend() {
		c.sent.join(i)
		r = c.sent.at(i)
		n = min(r.len(), mss, room)
	}
	if n < r.len() {
		c.sent.split(i, r.seq.Add(n))
	}
	c.resendRange(now, out, i)
	if i == 0 && !c.impatient() {
		// The timer is restarted for the first range. Otherwise it would expire before the answer can arrive.
		c.armRTO(now)
	}
}

// resendRange retransmits range i.
func (c *Conn) resendRange(now Time, out *Out, i int) {
	mss, r := c.segment(), c.sent.at(i)
	c.fill(now, out)
	out.Seq = uint32(r.seq)
	out.Off, out.Len, out.MSS = c.offset(r.seq), r.payload(), mss
	if out.Off+uint64(out.Len) == c.snd.end && out.Len > 0 {
		out.Flags |= wire.PSH
	}
	if r.flags&sentFIN != 0 {
		out.Flags |= wire.FIN
	}
	r.mss, r.at, r.sends = uint16(mss), now, min(r.sends, 254)+1
	c.sent.setFlags(r, sentRetrans, 0)
	segs := segments(out.Len, mss)
	c.stats.retransmits += uint32(segs)
	c.stats.bytesRetrans += uint64(out.Len)
	c.countN(Retransmits, segs)
	c.noteResent(now, r.len())
	c.sampleSent(now, i, r.len())
	c.sentData(now, out.Len)
	if c.rec.state == CARecovery {
		c.armProbe(now)
	}
}

// sendTailProbe sends new data, if there is any and the peer has room for it, even beyond the congestion
// window. Otherwise it retransmits the last segment.
func (c *Conn) sendTailProbe(now Time, out *Out) {
	mss := c.segment()
	pending := probeSegments
	if c.probe.on {
		pending = int(c.probe.pending)
	}
	if n := min(c.unsent(), c.windowRoom(), pending*mss); n > 0 && !c.sent.full() {
		c.sendNew(now, out, n, mss)
		c.probeSent(false, pending-segments(out.Len, mss))
		return
	}
	if c.rec.state == CARecovery {
		c.resendRange(now, out, c.firstMissing(mss))
		c.probeSent(false, 0) // the loss that the probe repairs is already known
		return
	}
	i := c.sent.len() - 1
	r := c.sent.at(i)
	if n := r.payload(); n > mss {
		last := n - (n-1)/mss*mss
		if c.sent.split(i, r.seq.Add(n-last)) {
			i++
		}
	}
	c.resendRange(now, out, i)
	c.probeSent(true, 0)
}

// firstMissing returns the index of the first segment that the peer has not acknowledged in any way; there must be one. It
// may not be the first in flight, if the peer has dropped data that it had selectively acknowledged.
func (c *Conn) firstMissing(mss int) int {
	i := 0
	for c.sent.at(i).flags&sentSacked != 0 {
		i++
	}
	if r := c.sent.at(i); r.payload() > mss {
		c.sent.split(i, r.seq.Add(mss))
	}
	return i
}

// sentData records that a segment with n bytes of data is sent.
func (c *Conn) sentData(now Time, n int) {
	c.snd.force = false
	c.snd.lastSent = now
	if c.rec.state == CARecovery || c.rec.state == CACWR {
		c.rec.prr.out += uint32(n)
	}
	c.timers.stop(timerPersist)
	c.departed(now, n)
	if !c.timers.armed(timerRTO) {
		c.armRTO(now) // the timer starts when data is sent (RFC 6298 rule 5.1)
	}
	if n > 0 {
		c.answered(now)
	}
	c.ackSent(true)
}

// sentSegments counts the segments that a frame will be cut into.
func (c *Conn) sentSegments(out *Out) {
	n := 1
	if out.Len > 0 {
		n = segments(out.Len, out.MSS)
		c.stats.dataOut += uint32(n)
	}
	c.stats.segsOut += uint32(n)
	c.countN(SegmentsOut, n)
}

// segments returns how many segments of mss bytes hold n bytes, at least one.
func segments(n, mss int) int { return max(1, (n+mss-1)/mss) }
