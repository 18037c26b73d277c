package tcp

// What the owner asks to spare itself work.

// Notice is how many more bytes the program may consume before Consumed would
// tell the peer of it: an owner that calls Consumed no more often than that
// loses nothing.
func (c *Conn) Notice() int {
	if !c.state.receives() || c.gone {
		return maxWindow
	}
	more, has := c.freeEdge().Sub(c.rcv.edge), c.rcv.edge.Sub(c.rcv.nxt)
	return max(0, min(int(c.rcv.size/2), max(2*int(c.snd.advMSS), has))-more)
}

// Reach is how many bytes behind the last acknowledged one have been sent, or may be sent at
// once as far as both windows go.
func (c *Conn) Reach() int {
	return max(c.flight(), min(int(c.window.Size), int(c.snd.wnd)))
}

// CongestionWindow is how many bytes may be in flight.
func (c *Conn) CongestionWindow() int {
	if c.cc == nil {
		return 0
	}
	return int(c.window.Size)
}
