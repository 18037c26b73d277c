package tcp

// Urgent data (RFC 9293 section 3.8.5, RFC 6093): a mark in the stream that the other
// side is told of ahead of the data. New programs should not use it; telnet and ftp do.
//
// The urgent pointer points to the octet behind the urgent data, as RFC 6093 section
// 2.2 settles it and everybody has always done. A later mark takes the place of an
// earlier one, so urgent data may be of any length (MUST-31). It is delivered in its
// place in the stream; whether a program sees the last octet of it elsewhere, as with
// MSG_OOB, is the owner's business.

import "loam/wire"

// SetUrgent tells that the outgoing stream in front of off, which may not have been
// written yet, is urgent.
func (c *Conn) SetUrgent(off uint64) {
	up := c.snd.una.Add(int(off - c.snd.off))
	if c.state == Closed || !c.snd.una.Less(up) || c.snd.urgent && up.LessEq(c.snd.up) {
		return
	}
	c.snd.urgent, c.snd.up = true, up
}

// UrgentEnd is where in the incoming stream the urgent data ends that the peer has
// told of; ok is false if there has been none. The data itself may not have come yet.
func (c *Conn) UrgentEnd() (off uint64, ok bool) {
	return c.rcv.off + uint64(int64(c.rcv.up.Sub(c.rcv.nxt))), c.rcv.urgent
}

// hurries reports whether what is sent next is urgent: then it goes at once, and in
// single segments, since a device that cuts up a frame does not move the pointer.
func (c *Conn) hurries() bool { return c.snd.urgent && c.snd.nxt.Less(c.snd.up) }

// markUrgent sets the pointer of a segment.
func (c *Conn) markUrgent(out *Out) {
	d := c.snd.up.Sub(Seq(out.Seq))
	if d <= 0 || out.Flags&(wire.SYN|wire.RST) != 0 {
		return
	}
	out.Flags |= wire.URG
	out.Urgent = uint16(min(d, 1<<16-1)) // as far as it reaches
}

// receiveUrgent is the sixth step of SEGMENT ARRIVES.
func (c *Conn) receiveUrgent(seg *Segment) {
	up := Seq(seg.Seq).Add(int(seg.Urgent))
	if !c.state.receives() || !c.rcv.nxt.Less(up) || c.rcv.urgent && up.LessEq(c.rcv.up) {
		return
	}
	c.rcv.urgent, c.rcv.up = true, up
}
