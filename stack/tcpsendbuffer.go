package stack

// How much a program may have written that has not been acknowledged.

// Sizes of the send ring in bytes. It grows with the congestion window, unless SO_SNDBUF
// has set it.
const (
	minSendBuffer = 256 << 10
	maxSendBuffer = 4 << 20
)

// hasRoom reports whether it is worth while to write: a quarter of the ring is
// free, so that a writer is not woken for each segment that is acknowledged. With
// TCP_NOTSENT_LOWAT what has not been sent is less than half of that.
func (c *TCPConn) hasRoom() bool {
	limit := c.toSend.Limit()
	enough := limit / 4
	if low := c.unsentLow.Load(); low != 0 {
		enough = min(int(low/2)+1, limit/2)
	}
	return c.toSend.Room() >= max(enough, 1)
}

// applySendBuffer follows SO_SNDBUF and TCP_NOTSENT_LOWAT. It runs on the shard.
func (c *TCPConn) applySendBuffer(o *TCPOptions) {
	if o.SendBuffer != 0 {
		c.sendLimit, c.fixedSend = o.SendBuffer, true
	}
	c.unsentLow.Store(uint32(max(o.UnsentLow, 0)))
	c.limitSend()
}

// growSendBuffer lets the program have twice the congestion window in the ring.
func (c *TCPConn) growSendBuffer() {
	want := min(2*c.machine.CongestionWindow(), maxSendBuffer)
	if c.fixedSend || want <= c.sendLimit {
		return
	}
	c.sendLimit = want
	c.limitSend()
}

// limitSend bounds the ring, by what may be sent now and TCP_NOTSENT_LOWAT behind it if that
// is set. It runs on the shard.
func (c *TCPConn) limitSend() {
	limit := c.sendLimit
	if low := int(c.unsentLow.Load()); low != 0 {
		limit = min(limit, c.machine.Reach()+low)
	}
	c.toSend.SetLimit(limit)
}
