package stack

// Urgent data with the semantics of MSG_OOB (tcp(7)). The last byte of urgent data, the urgent byte, is taken out of the
// stream and read separately; with TCPOptions.UrgentInline it stays in the stream. In both cases a read stops before the
// urgent byte, so that AtMark can report its position.
//
// The shard publishes the position of the urgent byte in TCPConn.urgent. Reads of the
// program, which hold readMu, clear it after passing it.

// Layout of TCPConn.urgent: zero if there is no urgent byte, otherwise the offset after
// it, shifted by urgentShift, and urgentTaken if it has been read separately.
const (
	urgentTaken = 1
	urgentShift = 1
)

// mark returns the position of the urgent byte. ok is false if there is none, or a read has passed it.
func (c *TCPConn) mark() (at uint64, taken, ok bool) {
	u := c.urgent.Load()
	return u>>urgentShift - 1, u&urgentTaken != 0, u != 0
}

// noteUrgent publishes a new urgent byte before it can be read. It runs on the shard.
func (c *TCPConn) noteUrgent() {
	if end, ok := c.machine.UrgentEnd(); ok && end != c.sawUrgent {
		c.sawUrgent, c.urgentReported = end, false
		c.urgent.Store(end << urgentShift)
	}
}

// reportUrgent reports the event Urgent once the urgent byte has arrived. It runs on the shard.
func (c *TCPConn) reportUrgent() {
	c.noteUrgent()
	if !c.urgentReported && c.urgentHere() {
		c.urgentReported = true
		c.reportEvents(Urgent)
	}
}

// urgentHere reports whether an urgent byte can be read separately.
func (c *TCPConn) urgentHere() bool {
	at, taken, ok := c.mark()
	next := c.received.Consumed()
	return ok && !taken && next <= at && at < next+uint64(c.received.Readable())
}

// hasInput reports whether a read would return data, not counting the urgent byte.
func (c *TCPConn) hasInput() bool {
	n := c.received.Readable()
	if n == 0 {
		return false
	}
	pass, _ := c.stretch(0, n)
	return n > pass
}

// inline reports whether the urgent byte stays in the stream.
func (c *TCPConn) inline() bool {
	c.options.mu.Lock()
	defer c.options.mu.Unlock()
	return c.options.o.UrgentInline
}

// stretch computes how a read of n bytes, starting skip bytes after the next unread byte, must treat the urgent byte. pass is
// the number of bytes to skip first (0 or 1, the urgent byte), and most is how many bytes the read may return.
func (c *TCPConn) stretch(skip, n int) (pass, most int) {
	at, _, ok := c.mark()
	if !ok {
		return 0, n
	}
	next := c.received.Consumed() + uint64(skip)
	switch {
	case next > at:
		return 0, n
	case next < at:
		return 0, int(min(uint64(n), at-next))
	case c.inline():
		return 0, n
	}
	return 1, n
}

// readPastMark reads received data. A read that begins before the urgent byte ends there; a read that begins at the urgent
// byte skips it. The caller holds readMu.
func (c *TCPConn) readPastMark(p []byte) int {
	pass, most := c.stretch(0, len(p))
	if pass > 0 && c.received.Discard(pass) < pass {
		return 0 // the urgent byte has not arrived yet
	}
	n := c.received.Read(p[:most])
	if u := c.urgent.Load(); u != 0 && c.received.Consumed() >= u>>urgentShift {
		c.urgent.CompareAndSwap(u, 0)
	}
	return n
}

// TryReadUrgent returns the urgent byte (MSG_OOB) and leaves it in place if keep is set. Errors: ErrInvalid if there is none,
// it has already been read, a read has passed it, or it stays in the stream; ErrWouldBlock if the peer has announced it and it
// has not arrived; ErrClosed.
func (c *TCPConn) TryReadUrgent(keep bool) (byte, error) {
	if c.status.Load()&statusClosed != 0 {
		return 0, ErrClosed
	}
	c.readMu.Lock()
	defer c.readMu.Unlock()
	at, taken, ok := c.mark()
	next := c.received.Consumed()
	if !ok || taken || next > at || c.inline() {
		return 0, ErrInvalid
	}
	var b [1]byte
	if c.received.Peek(b[:], int(at-next)) == 0 {
		return 0, ErrWouldBlock
	}
	if !keep {
		c.urgent.CompareAndSwap((at+1)<<urgentShift, (at+1)<<urgentShift|urgentTaken)
	}
	return b[0], nil
}

// AtMark reports whether the next byte to be read is the urgent byte (sockatmark(3)).
func (c *TCPConn) AtMark() bool {
	at, _, ok := c.mark()
	return ok && c.received.Consumed() == at
}

// TryWriteUrgent is like TryWrite, and marks the last byte that it writes as urgent.
func (c *TCPConn) TryWriteUrgent(p []byte) (int, error) { return c.tryWrite(p, false, len(p) > 0) }

// announce marks the next n bytes to be written, or as many as there is room for, as urgent, and returns their number.
// It sets wishUrgent before the bytes are written, because the shard may send bytes as soon as they are in the ring.
// The caller holds writeMu.
func (c *TCPConn) announce(n int) int {
	room := c.toSend.Room()
	if room < n && c.wish.Or(wishWrite)&wishWrite == 0 {
		room = c.toSend.Room() // the shard may have made room before it could see wishWrite
	}
	if n = min(n, room); n > 0 {
		c.urgentTo.Store(c.toSend.End() + uint64(n))
		c.wish.Or(wishUrgent)
	}
	return n
}
