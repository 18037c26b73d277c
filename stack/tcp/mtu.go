package tcp

// Reaction to a path that allows only smaller segments than before (RFC 8201, RFC 1191).

// SetMSS reports that the path now allows mss bytes of payload without options. Larger segments in flight are
// marked as lost, since the path has dropped them, but that is no sign of congestion. The segment size never
// exceeds the initial size of the connection.
func (c *Conn) SetMSS(now Time, mss int) {
	c.snd.pathMSS = uint16(min(max(mss, minMSS), int(c.snd.advMSS)))
	before := c.window.MSS
	c.updateMSS()
	if c.window.MSS >= before || !c.state.synchronized() {
		return
	}
	lost := false
	for i := range c.sent.len() {
		r := c.sent.at(i)
		if r.flags&(sentSacked|sentLost) == 0 && uint32(r.mss) > c.window.MSS && r.payload() > int(c.window.MSS) {
			c.sent.setFlags(r, sentLost, sentRetrans)
			lost = true
		}
	}
	if !lost || c.rec.state == CALoss {
		return
	}
	c.cancelProbe()
	c.timers.stop(timerReorder)
	c.rec.state = CALoss
	c.rec.point = c.snd.nxt
	c.rec.undoable = false
	c.rec.dups = 0
	c.rec.frto = frtoOff
}
