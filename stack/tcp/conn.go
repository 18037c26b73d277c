package tcp

import (
	"errors"
	"time"
)

// Why a connection ended.
var (
	ErrReset       = errors.New("connection reset by peer")
	ErrRefused     = errors.New("connection refused")
	ErrTimeout     = errors.New("connection timed out")
	ErrAborted     = errors.New("connection aborted")
	ErrUnreachable = errors.New("destination unreachable")
)

// Conn is one connection: a transmission control block (RFC 9293 section 3.3.1).
// It belongs to one goroutine. After each call that changes it the owner calls
// Poll until it is false or there is no room to send, and arms a timer for
// Deadline; when Done is true it lets go of it.
type Conn struct {
	id    ID
	state State
	err   error
}

// Dial begins a connection (active OPEN): Poll yields the SYN. iss and tsOffset
// come from a Key; mss is the payload that the path allows without options (the
// MTU less 40 for IPv4 and 60 for IPv6). The owner of the connection owns out
// and in as well; cfg may be nil.
func Dial(now Time, cfg *Config, id ID, iss, tsOffset uint32, mss int, out Outgoing, in Incoming) *Conn {
	return &Conn{id: id, state: SynSent}
}

// Accept takes up a connection for which syn arrived at a listener, in
// SYN-RECEIVED: Poll yields the SYN-ACK.
func Accept(now Time, cfg *Config, id ID, iss, tsOffset uint32, mss int, syn *Segment, out Outgoing, in Incoming) *Conn {
	return &Conn{id: id, state: SynReceived}
}

// Receive takes a segment that arrived. Its payload is not kept.
func (c *Conn) Receive(now Time, seg *Segment) {}

// Tick does what was to be done at deadlines that have passed.
func (c *Conn) Tick(now Time) {}

// Deadline is the time at which Tick is to be called, or Never.
func (c *Conn) Deadline() Time { return Never }

// Poll fills out the next segment to send and counts it as sent, or returns
// false. A segment has at most max(maxPayload, one MSS) bytes of payload. A
// larger maxPayload than the MSS allows several segments in one frame: all but
// the last have out.MSS bytes.
func (c *Conn) Poll(now Time, maxPayload int, out *Out) bool { return false }

// Pending reports whether Poll has something to send.
func (c *Conn) Pending() bool { return false }

// Written tells that Outgoing.End has moved.
func (c *Conn) Written(now Time) {}

// Consumed tells that Incoming.Consumed has moved.
func (c *Conn) Consumed(now Time) {}

// CloseWrite ends the outgoing stream behind what has been written (shutdown).
func (c *Conn) CloseWrite(now Time) {}

// Close tells that the program is gone. If data is unread or arrives later, the
// peer is told by a reset that it is lost (RFC 9293 section 3.6.1, RFC 2525
// section 2.17); otherwise the connection ends in order.
func (c *Conn) Close(now Time) {}

// Abort ends the connection at once; the peer gets a reset if it knows of it.
func (c *Conn) Abort(now Time) {}

// SetNoDelay switches Nagle's algorithm off (TCP_NODELAY).
func (c *Conn) SetNoDelay(now Time, on bool) {}

// SetCork holds back what does not fill a segment, for at most 200 ms (TCP_CORK).
func (c *Conn) SetCork(now Time, on bool) {}

// SetQuickAck switches delayed acknowledgments off until the connection turns
// interactive again (TCP_QUICKACK).
func (c *Conn) SetQuickAck(now Time, on bool) {}

// SetKeepAlive probes the peer when nothing has come from it for idle; idle 0
// stops it. interval and count 0 mean the defaults.
func (c *Conn) SetKeepAlive(now Time, idle, interval time.Duration, count int) {}

// SetUserTimeout bounds the time that sent data may stay unacknowledged; 0 goes
// back to counting retransmissions (TCP_USER_TIMEOUT).
func (c *Conn) SetUserTimeout(now Time, d time.Duration) {}

// SetMaxReceiveBuffer changes how far the receive window may grow. Space that
// the peer has been told of stays promised.
func (c *Conn) SetMaxReceiveBuffer(now Time, n int) {}

// SetMSS tells that the path now allows mss bytes of payload without options.
// It never raises the size above what the connection began with.
func (c *Conn) SetMSS(now Time, mss int) {}

// ICMP takes an ICMP error that quotes a segment of this connection with the
// sequence number seq. For ICMPTooBig, mss is the payload that the reported MTU
// leaves. It reports whether the message was believed: the owner may then
// remember the MTU for the path.
func (c *Conn) ICMP(now Time, kind ICMPKind, seq uint32, mss int) bool { return false }

// ID is what the connection was made with.
func (c *Conn) ID() ID { return c.id }

// State is the state.
func (c *Conn) State() State { return c.state }

// Err is why the connection ended, or nil if it has not or ended in order.
func (c *Conn) Err() error { return c.err }

// ReadClosed reports whether the peer has sent its FIN and everything in front
// of it has been committed.
func (c *Conn) ReadClosed() bool { return false }

// WriteClosed reports whether the outgoing stream has been closed by this side.
func (c *Conn) WriteClosed() bool { return false }

// Done reports whether the connection has ended and has nothing left to send.
func (c *Conn) Done() bool { return c.state == Closed }

// CanReuse reports whether syn may begin a new connection in place of this one
// in TIME-WAIT (RFC 9293 section 3.10.7.4, RFC 6191). The owner then lets go of
// this one and treats syn as one for the listener.
func (c *Conn) CanReuse(now Time, syn *Segment) bool { return false }

// Info describes the connection.
func (c *Conn) Info(now Time) Info { return Info{} }
