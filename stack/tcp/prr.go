package tcp

// Proportional rate reduction (RFC 9937): while loss is repaired, how much is
// sent follows how much is delivered, so that the window comes down to the
// threshold over one round trip, without a pause and without a burst. It governs
// Recovery and CWR.

// prr is its state, in bytes.
type prr struct {
	delivered uint32 // since the state began (prr_delivered)
	out       uint32 // sent since (prr_out)
	flight    uint32 // in flight when it began (RecoverFS)
}

// prrBegin starts with the acknowledgment that began the state: what it delivers
// counts as delivered during it. So does what others have selectively acknowledged
// just before, as far as nothing was sent for it yet: an owner takes all that has
// arrived before it polls.
func (c *Conn) prrBegin(ev *arrival) {
	earlier := max(int(c.sent.sacked)+c.dupBytes()-ev.deliver, 0)
	unused := min(max(int(c.window.Size)-ev.before, 0), earlier)
	flight := c.flight() - earlier + unused
	c.rec.prr = prr{flight: uint32(max(flight, int(c.window.MSS))), delivered: uint32(unused)}
}

// prrAcked sets the window from what an acknowledgment delivered.
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
			n += mss // a safeACK: the repair makes progress
		}
		n = min(n, threshold-pipe)
	}
	if p.out == 0 {
		n = max(n, mss) // at least the first hole is sent again at once
	}
	c.window.Size = uint32(pipe + max(n, 0))
}
