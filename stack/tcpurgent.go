package stack

// Urgent data as programs know it from MSG_OOB (tcp(7)): its last octet, the urgent
// byte, is taken out of the stream and read by itself; with
// TCPOptions.UrgentInline it stays where it is. Either way one read does not go
// beyond it, so that AtMark can tell where in the stream it is.
//
// The shard publishes where the urgent byte is, in TCPConn.urgent; the program's
// reads, which hold readMu, clear it when they have gone by.

// Bits of TCPConn.urgent: zero if there is no urgent byte, else the offset behind it,
// and whether it has been read by itself.
const (
	urgentTaken = 1
	urgentShift = 1
)

// mark is the place of the urgent byte; ok is false if there is none that a read has
// not gone by yet.
func (c *TCPConn) mark() (at uint64, taken, ok bool) {
	u := c.urgent.Load()
	return u>>urgentShift - 1, u&urgentTaken != 0, u != 0
}

// noteUrgent publishes a new urgent byte, before it can be read. It runs on the shard.
func (c *TCPConn) noteUrgent() {
	if end, ok := c.machine.UrgentEnd(); ok && end != c.sawUrgent {
		c.sawUrgent, c.toldUrgent = end, false
		c.urgent.Store(end << urgentShift)
	}
}

// tellUrgent tells whoever watches that the urgent byte has come. It runs on the shard.
func (c *TCPConn) tellUrgent() {
	c.noteUrgent()
	if !c.toldUrgent && c.urgentHere() {
		c.toldUrgent = true
		c.tell(Urgent)
	}
}

// urgentHere reports whether there is an urgent byte to be read by itself.
func (c *TCPConn) urgentHere() bool {
	at, taken, ok := c.mark()
	next := c.received.Consumed()
	return ok && !taken && next <= at && at < next+uint64(c.received.Readable())
}

// hasInput reports whether a read finds something: the urgent byte does not count.
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

// stretch is how much of n bytes, skip behind the first that was not read, one read
// may take, and how many bytes it has to pass over first: the urgent byte.
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

// readPastMark is received.Read that minds the urgent byte. With readMu held.
func (c *TCPConn) readPastMark(p []byte) int {
	pass, most := c.stretch(0, len(p))
	if pass > 0 && c.received.Discard(pass) < pass {
		return 0 // it has not come yet
	}
	n := c.received.Read(p[:most])
	if u := c.urgent.Load(); u != 0 && c.received.Consumed() >= u>>urgentShift {
		c.urgent.CompareAndSwap(u, 0)
	}
	return n
}

// TryReadUrgent returns the urgent byte (MSG_OOB), and leaves it there if keep is set.
// Errors: ErrInvalid if there is none, if it has been read already, if a read has gone
// by, or if it stays in the stream; ErrWouldBlock if the peer has told of it and it
// has not come; ErrClosed.
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

// AtMark reports whether the next byte to be read is the urgent one (sockatmark(3)).
func (c *TCPConn) AtMark() bool {
	at, _, ok := c.mark()
	return ok && c.received.Consumed() == at
}

// TryWriteUrgent is TryWrite of bytes of which the last is urgent.
func (c *TCPConn) TryWriteUrgent(p []byte) (int, error) { return c.tryWrite(p, len(p) > 0) }

// announce has the peer told that what is about to be written, n bytes or as many as
// there is room for, is urgent, and returns how many that is. The shard may see the
// bytes before it sees the wish of whoever writes them, so the wish comes first. With
// writeMu held.
func (c *TCPConn) announce(n int) int {
	room := c.toSend.Room()
	if room < n && c.wish.Or(wishWrite)&wishWrite == 0 {
		room = c.toSend.Room() // it may have come before the shard could see the wish
	}
	if n = min(n, room); n > 0 {
		c.urgentTo.Store(c.toSend.End() + uint64(n))
		c.wish.Or(wishUrgent)
	}
	return n
}
