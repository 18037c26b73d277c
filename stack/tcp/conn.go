package tcp

// State of a connection, and its accessors.
//
// Read RFC 9293 sections 3.3 to 3.10 before working on this package. The files follow its parts:
//
//	open.go         OPEN, SYN-SENT, SYN-RECEIVED      options.go   negotiation of options in SYNs
//	receive.go      SEGMENT ARRIVES, steps 1 to 4     challenge.go RFC 5961
//	ack.go          step 5, the ACK field             sack.go      selective acknowledgments, received
//	urgent.go, text.go  steps 6 to 8, URG, text, FIN  duplicate.go                and sent
//	delayedack.go   when to acknowledge               window.go    receive window
//	poll.go         what to send next                 send.go      building a segment
//	fastopen.go     RFC 7413
//	program.go      SEND, RECEIVE, CLOSE, ABORT       timers.go    USER TIMEOUT and other timers
//
// Loss detection and recovery: sent.go records the data in flight. rtt.go and rto.go implement RFC 6298,
// rack.go and probe.go RFC 8985. recovery.go holds the state of the sender, and prr.go implements RFC 9937.
// undo.go and frto.go detect that nothing was lost after all. mtusearch.go finds the segment size for paths
// that silently drop large packets.
//
// Congestion control: package congestion has the interfaces and the algorithms. rate.go feeds a Model with samples, pacing.go
// spreads the data over time, and ecn.go handles marks.
//
// Idle and closing connections: persist.go probes closed windows, keepalive.go idle peers. timewait.go
// implements TIME-WAIT and limits FIN-WAIT-2.
//
// Invariants, checked by the fuzz test after each event:
//
//	SND.UNA <= SND.NXT, and the sent ranges cover exactly the numbers in between
//	the right edge of the receive window never moves left
//	bytes written to Incoming lie between RCV.NXT and that edge
//	after Closed nothing changes, except that Poll may still send a pending reset

// Conn is one connection: a transmission control block (RFC 9293 section 3.3.1). It belongs to one goroutine
// at a time. After each call that changes it, the owner calls Poll until Poll returns false or there is no
// room to send, and arms a timer for Deadline. When Done returns true, the owner drops the Conn.
type Conn struct {
	id  ID
	cfg *Config
	out Outgoing
	in  Incoming
	cc  Congestion

	fast *FastOpen // state of Fast Open; nil if it is not used (fastopen.go)
	rate *sampler  // samples of the delivery rate; nil unless the congestion control is a Model
	pace *pacer    // pacing state; nil until a rate limit is set

	search *search // the search for the path MTU; nil until a black hole is suspected, unless the settings require it

	state    State
	reason   reason // reason why the connection ended
	soft     reason // error that may be temporary; returned if the connection attempt fails
	passive  bool   // the connection was opened by Accept
	gone     bool   // Close was called, so the program no longer reads
	todo     todo   // segments without data that Poll has to send
	finWait2 int16  // timeout set by SetFinWait2, in seconds

	snd        sender
	sent       sentQueue
	rcv        receiver
	ack        ackPolicy
	rtt        rtt
	rack       rack
	probe      probe
	rec        recovery
	window     Window
	ts         timestamps
	ecn        ecn
	challenged millis // rate limit of challenge acknowledgments (challenge.go)
	keep       keepAlive
	timers     timers
	stats      stats
}

// sender holds the send sequence space (RFC 9293 section 3.3.1) and the inputs to the decision when to send.
type sender struct {
	iss, una, nxt Seq
	wl1, wl2      Seq // sequence and acknowledgment number of the segment that last changed the window (SND.WL1, SND.WL2)
	small         Seq // end of the last segment sent that was not full
	refuse        Seq // sequence number for a reset that rejects a segment

	wnd, maxWnd uint32 // window that the peer offers, and the largest window that it has ever offered
	scale       uint8  // window scale of received segments
	proven      uint16 // largest payload of a segment that the peer has acknowledged, in bytes

	// off is the offset of una in the outgoing stream. The SYN counts as the number before offset 0, so
	// off is -1 (wrapped) until the SYN is acknowledged.
	off uint64
	end uint64 // Outgoing.End after the program's last write

	mss     uint16 // payload of a segment without options in bytes: the minimum of the two fields below and of the size that search allows
	pathMSS uint16
	peerMSS uint16
	advMSS  uint16 // MSS that we announced to the peer

	userTimeout millis
	up          Seq  // SND.UP, the end of the urgent data; valid if urgent is set
	lastSent    Time // time at which data was last sent
	progress    Time // time at which una last advanced, or at which data was first in flight again
	retries     uint8
	probes      uint8 // number of probes of a closed window that the peer has not answered
	persists    uint8 // number of probes of a closed window since the window was closed

	burst     uint32 // maximum payload of a frame that the owner sends at once
	maxFlight uint32 // maximum number of bytes in flight in the current window: see validate
	usage     Seq
	limited   bool // the congestion window has held back data in the current window

	fin     bool // CloseWrite was called: a FIN follows the data
	finSent bool
	noDelay bool
	cork    bool
	more    bool // set by SetMore: the program will write more soon
	force   bool // send the next segment now, even if it is small
	urgent  bool // up is set and not acknowledged
}

// todo is a set of segments, other than data, that Poll has to send.
type todo uint8

const (
	todoReset  todo = 1 << iota // a reset that ends this connection
	todoRefuse                  // a reset that rejects one received segment, with sequence number snd.refuse
	todoAck                     // an acknowledgment without delay
	todoProbe                   // a tail loss probe (RFC 8985)
	todoPoke                    // a segment that makes the peer answer: keep-alive, or a probe of a closed window
)

// stats holds counts that only the method Info returns.
type stats struct {
	segsOut, segsIn, dataOut, dataIn uint32
	delivered, deliveredCE           uint32
	retransmits, dsacks, reordered   uint32
	outOfOrder                       uint32
	bytesRetrans                     uint64
}

// ID returns the ID that the connection was opened with.
func (c *Conn) ID() ID { return c.id }

// State returns the current state.
func (c *Conn) State() State { return c.state }

// Err returns why the connection failed. It is nil if the connection has not ended, or ended in order.
func (c *Conn) Err() error { return c.reason.err() }

// ReadClosed reports whether the peer has sent its FIN and all data before it has been committed.
func (c *Conn) ReadClosed() bool { return c.rcv.closed }

// WriteClosed reports whether this side has ended the outgoing stream.
func (c *Conn) WriteClosed() bool { return c.snd.fin || c.state == Closed }

// Done reports whether the connection has ended and has nothing left to send.
func (c *Conn) Done() bool { return c.state == Closed && c.todo == 0 }

// close ends the connection. The peer is not notified unless todo holds a reset.
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

// releaseAll frees the memory that a connection needs only while it sends or receives data.
func (c *Conn) releaseAll() {
	c.timers.stopAll()
	c.sent.release()
	c.rcv.behind = nil
	c.cc, c.rate, c.search = nil, nil, nil
}

// reset ends the connection and sends a reset to the peer.
func (c *Conn) reset(why reason) {
	if c.state == Closed {
		return
	}
	c.todo |= todoReset
	c.close(why)
}

// finAcked reports whether our FIN has been acknowledged.
func (c *Conn) finAcked() bool { return c.snd.finSent && c.snd.una == c.snd.nxt }

// offset returns the offset of sequence number s in the outgoing stream.
func (c *Conn) offset(s Seq) uint64 { return c.snd.off + uint64(int64(s.Sub(c.snd.una))) }

// unsent returns the number of bytes that have been written and never sent.
func (c *Conn) unsent() int {
	if c.snd.finSent || !c.Usable() {
		return 0
	}
	return int(c.snd.end - c.offset(c.snd.nxt))
}

// flight returns FlightSize: the count of sequence numbers between SND.UNA and SND.NXT.
func (c *Conn) flight() int { return int(c.snd.nxt - c.snd.una) }
