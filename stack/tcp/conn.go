package tcp

// A connection's state, and what can be seen of it from outside.
//
// Read RFC 9293 sections 3.3 to 3.10 before working on this package. The files
// follow its parts:
//
//	open.go         OPEN, SYN-SENT, SYN-RECEIVED      options.go   what the two sides agree on
//	receive.go      SEGMENT ARRIVES, steps 1 to 4     challenge.go RFC 5961
//	ack.go          step 5, the ACK field             sack.go      selective acknowledgments that arrive
//	urgent.go, text.go  steps 6 to 8, URG, text, FIN  reassembly.go, duplicate.go  and those that we send
//	delayedack.go   when to acknowledge               window.go    what to offer
//	poll.go         what to send next                 send.go      the segment itself
//	program.go      SEND, RECEIVE, CLOSE, ABORT       timers.go    USER TIMEOUT and the others
//
// Loss: sent.go is the record of what is in flight; rtt.go and rto.go RFC 6298;
// blackhole.go what passes a path that drops without a word;
// rack.go and probe.go RFC 8985; recovery.go what state the sender is in, prr.go
// RFC 9937, undo.go and frto.go how it finds that nothing was lost after all.
//
// Invariants, checked by the fuzz test after each event:
//
//	SND.UNA <= SND.NXT, and the sent ranges cover exactly what lies between
//	the right edge of the receive window never moves left
//	what is handed to Incoming lies between RCV.NXT and that edge
//	after Closed nothing changes but what Poll still has to say

// Conn is one connection: a transmission control block (RFC 9293 section 3.3.1).
// It belongs to one goroutine. After each call that changes it the owner calls
// Poll until it is false or there is no room to send, and arms a timer for
// Deadline; when Done is true it lets go of it.
type Conn struct {
	id  ID
	cfg *Config
	out Outgoing
	in  Incoming
	cc  Congestion

	state    State
	reason   reason // why the connection ended
	soft     reason // an error that may pass, told if the attempt fails
	passive  bool   // began with Accept
	gone     bool   // Close: no program reads any more
	todo     todo   // what Poll owes beyond data
	finWait2 int16  // SetFinWait2, in seconds

	challenged Time // limit of challenge acknowledgments (challenge.go)

	snd    sender
	sent   sentQueue
	rcv    receiver
	ack    ackPolicy
	rtt    rtt
	rack   rack
	probe  probe
	rec    recovery
	window Window
	ts     timestamps
	ecn    ecn
	keep   keepAlive
	timers timers
	stats  stats
}

// sender is the send sequence space (RFC 9293 section 3.3.1) and what decides
// when to send.
type sender struct {
	iss, una, nxt Seq
	wl1, wl2      Seq // segment that last changed the window
	small         Seq // end of the last segment sent that was not full
	refuse        Seq // number for a reset that refuses a segment

	wnd, maxWnd uint32 // what the peer offers, and the most that it ever offered
	scale       uint8  // of the window field of segments that arrive
	holeMSS     uint16 // what passes a suspected black hole; 0: none is suspected

	// off is the offset of una in the outgoing stream, where the SYN counts as
	// the number in front of offset 0: it is -1 until the SYN is acknowledged.
	off uint64
	end uint64 // Outgoing.End when the program last wrote

	mss     uint16 // payload of a segment without options: least of the next two, and holeMSS
	pathMSS uint16
	peerMSS uint16
	advMSS  uint16 // what we told the peer

	userTimeout millis
	up          Seq  // SND.UP, if urgent: the end of the urgent data
	lastSent    Time // last segment with data
	progress    Time // una last moved, or data was first in flight again
	retries     uint8
	probes      uint8 // of a closed window, unanswered
	persists    uint8 // of a closed window, since it closed
	holeAt      uint8 // when a black hole was suspected, in minutes, which wrap

	burst     uint32 // payload that the owner takes in one frame
	maxFlight uint32 // most in flight in this window, see validate
	usage     Seq
	limited   bool // the congestion window stopped us in this window

	fin     bool // CloseWrite: a FIN follows the data
	finSent bool
	noDelay bool
	cork    bool
	more    bool // SetMore
	force   bool // send what there is, be it small
	urgent  bool // up is set and not acknowledged
}

// todo says what Poll owes.
type todo uint8

const (
	todoReset  todo = 1 << iota // a reset that ends the connection
	todoRefuse                  // a reset that refuses one segment, with number snd.refuse
	todoAck                     // an acknowledgment at once
	todoProbe                   // a tail loss probe
	todoPoke                    // a segment that must be answered: keep-alive, closed window
)

// stats is what only Info shows.
type stats struct {
	segsOut, segsIn, dataOut, dataIn uint32
	delivered, deliveredCE           uint32
	retransmits, dsacks, reordered   uint32
	outOfOrder                       uint32
	bytesRetrans                     uint64
}

// ID is what the connection was made with.
func (c *Conn) ID() ID { return c.id }

// State is the state.
func (c *Conn) State() State { return c.state }

// Err is why the connection ended, or nil if it has not or ended in order.
func (c *Conn) Err() error { return c.reason.err() }

// ReadClosed reports whether the peer has sent its FIN and everything in front
// of it has been committed.
func (c *Conn) ReadClosed() bool { return c.rcv.closed }

// WriteClosed reports whether this side has ended the outgoing stream.
func (c *Conn) WriteClosed() bool { return c.snd.fin || c.state == Closed }

// Done reports whether the connection has ended and has nothing left to send.
func (c *Conn) Done() bool { return c.state == Closed && c.todo == 0 }

// close ends the connection, silently unless todo holds a reset.
func (c *Conn) close(why reason) {
	if c.state == Closed {
		return
	}
	c.state = Closed
	c.reason = why
	c.todo &= todoReset | todoRefuse
	c.ack.dups = 0
	c.releaseAll()
}

// releaseAll gives back what a connection that sends and receives no more data
// has no use for.
func (c *Conn) releaseAll() {
	c.timers.stopAll()
	c.sent.release()
	c.rcv.behind = nil
	c.cc = nil
}

// reset ends the connection and tells the peer.
func (c *Conn) reset(why reason) {
	if c.state == Closed {
		return
	}
	c.todo |= todoReset
	c.close(why)
}

// finAcked reports whether our FIN has been acknowledged.
func (c *Conn) finAcked() bool { return c.snd.finSent && c.snd.una == c.snd.nxt }

// offset is the place of sequence number s in the outgoing stream.
func (c *Conn) offset(s Seq) uint64 { return c.snd.off + uint64(int64(s.Sub(c.snd.una))) }

// unsent is how many bytes have been written and never sent.
func (c *Conn) unsent() int {
	if c.snd.finSent || c.state < Established {
		return 0
	}
	return int(c.snd.end - c.offset(c.snd.nxt))
}

// flight is FlightSize: the numbers between SND.UNA and SND.NXT.
func (c *Conn) flight() int { return int(c.snd.nxt - c.snd.una) }
