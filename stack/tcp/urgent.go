package tcp

// Urgent data (RFC 9293 section 3.8.5, RFC 6093): a mark in the stream that is announced ahead of the data.
// New programs should not use it; telnet and ftp do.
//
// The urgent pointer points to the octet after the urgent data, as RFC 6093 section 2.2 specifies and all
// implementations do. A later mark replaces an earlier one, so urgent data may have any length (MUST-31). It
// is delivered in its place in the stream. The owner may deliver the last octet separately (MSG_OOB).

import "loam/wire"

// SetUrgent marks the outgoing stream before the offset off as urgent. The program may
// write that data later.
func (c *Conn) SetUrgent(off uint64) {
	up := c.snd.una.Add(int(off - c.snd.off))
	if c.state == Closed || !c.snd.una.Less(up) || c.snd.urgent && up.LessEq(c.snd.up) {
		return
	}
	c.snd.urgent, c.snd.up = true, up
}

// UrgentEnd returns the offset in the incoming stream at which the announced urgent data ends. ok is false if
// none was announced. The data itself may not have arrived yet.
func (c *Conn) UrgentEnd() (off uint64, ok bool) {
	return c.rcv.urgentEnd, c.rcv.urgentEnd != 0
}

// sendsUrgent reports whether the next data to send is urgent. Urgent data is sent at once and in single
// segments, because a device that splits a frame does not adjust the urgent pointer.
func (c *Conn) sendsUrgent() bool { return c.snd.urgent && c.snd.nxt.Less(c.snd.up) }

// markUrgent sets the urgent pointer of a segment.
func (c *Conn) markUrgent(out *Out) {
	d := c.snd.up.Sub(Seq(out.Seq))
	if d <= 0 || out.Flags&(wire.SYN|wire.RST) != 0 {
		return
	}
	out.Flags |= wire.URG
	out.Urgent = uint16(min(d, 1<<16-1)) // limited to the largest value of the 16-bit field
}

// receiveUrgent implements step 6 of SEGMENT ARRIVES (RFC 9293 section 3.10.7.4). RCV.UP is kept as an offset in the
// stream: as a sequence number, it would seem to lie ahead of RCV.NXT again after another 2 GiB of data, and RCV.NXT also
// counts the FIN.
func (c *Conn) receiveUrgent(seg *Segment) {
	ahead := Seq(seg.Seq).Add(int(seg.Urgent)).Sub(c.rcv.nxt)
	if c.state.receives() && ahead > 0 {
		c.rcv.urgentEnd = max(c.rcv.urgentEnd, c.rcv.off+uint64(ahead))
	}
}
