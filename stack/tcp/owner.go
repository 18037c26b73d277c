package tcp

// Queries by which the owner of a connection avoids unnecessary work.

// Notice returns the number of bytes that the program may still read before Consumed would send a segment to the peer. An
// owner may postpone its call of Consumed until then without any effect on the peer.
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

// Reach returns the number of bytes after the last acknowledged byte that have been sent, or may be sent at once within both
// windows.
func (c *Conn) Reach() int {
	return max(c.flight(), min(int(c.window.Size), int(c.snd.wnd)))
}

// SentTo returns the offset in the outgoing stream after the last byte that was ever sent.
func (c *Conn) SentTo() uint64 {
	switch {
	case !c.Usable():
		return 0
	case c.snd.finSent:
		return c.snd.end
	}
	return c.offset(c.snd.nxt)
}

// PeerMSS returns the segment size that the peer has announced, without options, in bytes.
func (c *Conn) PeerMSS() int { return int(c.snd.peerMSS) }

// MinRTT returns the minimum round trip time of the last minutes, 0 if none has been measured.
func (c *Conn) MinRTT() Time { return c.rtt.min }

// CongestionWindow returns the number of bytes that may be in flight. It returns 0 before the handshake is complete and
// after the connection has ended.
func (c *Conn) CongestionWindow() int {
	if c.cc == nil {
		return 0
	}
	return int(c.window.Size)
}
