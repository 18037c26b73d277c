package tcp

// Queries that help the owner avoid work.

// Notice returns how many more bytes the program may consume before Consumed would send a segment to the
// peer. An owner may postpone its call of Consumed until then without any effect on the peer.
func (c *Conn) Notice() int {
	if !c.state.receives() || c.gone {
		return maxWindow
	}
	more, has := c.freeEdge().Sub(c.rcv.edge), c.rcv.edge.Sub(c.rcv.nxt)
	notice := max(0, min(int(c.rcv.size/2), max(2*int(c.snd.advMSS), has))-more)
	if c.AcksOnRead() {
		notice = min(notice, int(c.rcv.off-c.in.Consumed()))
	}
	return notice
}

// Reach returns how many bytes behind the last acknowledged one have been sent or may be sent at once within
// both windows.
func (c *Conn) Reach() int {
	return max(c.flight(), min(int(c.window.Size), int(c.snd.wnd)))
}

// SentTo returns the offset in the outgoing stream behind the last byte ever sent.
func (c *Conn) SentTo() uint64 {
	switch {
	case c.state == SynSent || c.state == SynReceived || c.state == Closed:
		return 0
	case c.snd.finSent:
		return c.snd.end
	}
	return c.offset(c.snd.nxt)
}

// MinRTT returns the minimum round trip time of the last minutes, 0 if none has been measured.
func (c *Conn) MinRTT() Time { return c.rtt.min }

// CongestionWindow returns how many bytes may be in flight, 0 before the handshake is complete and after the end.
func (c *Conn) CongestionWindow() int {
	if c.cc == nil {
		return 0
	}
	return int(c.window.Size)
}
