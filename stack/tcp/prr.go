package tcp

// Proportional rate reduction (RFC 9937). While loss is repaired, the amount sent follows the amount
// delivered. The window thus shrinks to the threshold over one round trip, without a pause or a burst. PRR
// applies in Recovery and CWR.

// prr holds the state of proportional rate reduction, in bytes.
type prr struct {
	delivered uint32 // bytes delivered since the recovery state began (prr_delivered)
	out       uint32 // bytes sent since the recovery state began (prr_out)
	flight    uint32 // bytes in flight when the recovery state began (RecoverFS)
}

// prrBegin initializes prr at the acknowledgment that starts the recovery state. Data that this acknowledgment delivers
// counts as delivered during recovery. The same holds for data that was selectively acknowledged just before, if nothing has
// been sent for it yet: an owner processes all received segments before it polls.
func (c *Conn) prrBegin(ev *arrival) {
	earlier := max(int(c.sent.sacked)+c.dupBytes()-ev.deliver, 0)
	unused := min(max(int(c.window.Size)-ev.before, 0), earlier)
	flight := c.flight() - earlier + unused
	c.rec.prr = prr{flight: uint32(max(flight, int(c.window.MSS))), delivered: uint32(unused)}
}

// prrAcked sets the window from the amount that an acknowledgment delivered.
func (c *Conn) prrAcked(ev *arrival) {
	if ev.deliver == 0 {
		return
	}
	p := &c.rec.prr
	p.delivered += uint32(ev.deliver)
	pipe, threshold, mss := c.pipe(), int(c.window.Threshold), int(c.window.MSS)
	var n int
	if pipe > threshold {
		n = int((uint64(p.delivered)*uint64(threshold)+uint64(p.flight)-1)/uint64(p.flight)) - int(p.out)
	} else {
		n = max(int(p.delivered)-int(p.out), ev.deliver)
		if ev.acked > 0 && ev.lost == 0 {
			n += mss // the acknowledgment is a safeACK of RFC 9937: the repair makes progress
		}
		n = min(n, threshold-pipe)
	}
	if p.out == 0 {
		n = max(n, mss) // the first lost segment is always retransmitted at once
	}
	c.window.Size = uint32(pipe + max(n, 0))
}
