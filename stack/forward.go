package stack

import (
	"bytes"
	"net/netip"
	"sync/atomic"

	"loam/link"
	"loam/stack/tcp"
	"loam/wire"
)

// Forwarding for gateways. On an interface with AcceptAny, packets that match no socket
// go to a forwarder, which decides whether to accept the connection.

// Forwarder handles packets to addresses that are not the stack's own. Each function is
// called on a new goroutine. A nil function rejects the traffic.
type Forwarder struct {
	// TCP is called for each connection attempt. The peer gets no reply until TCP calls
	// Accept or Reject; returning without either rejects the attempt.
	TCP func(*TCPRequest)
	// UDP is called for each new flow. The socket is connected to the peer and bound to the peer's destination address, and
	// receives the first datagram of the flow. UDP should start a goroutine for the flow and return; until it returns, the
	// flow counts as undecided.
	UDP func(*UDPConn)
	// Ping is called for each echo request. Reply answers the request.
	Ping func(*PingRequest)
}

// maxForward bounds the requests that a forwarder has not decided, per stack.
const maxForward = 1024

// Forward sets the forwarder. It must be called before the first interface with AcceptAny is attached.
func (s *Stack) Forward(f Forwarder) { s.forwarder = f }

// forwarding is a shard's set of undecided connection attempts. It prevents a
// retransmitted SYN from becoming a second request.
type forwarding struct {
	pending map[flow]*TCPRequest
}

// Refuse informs the peer of a forwarder's socket that its datagrams are not accepted, with an ICMP "port unreachable" error
// subject to the rate limit. The socket stays open. Refuse does nothing on a socket without a peer, or one that was not passed
// to Forwarder.UDP.
func (c *UDPConn) Refuse() {
	peer := c.peer.Load()
	if c.home == nil || peer == nil {
		return
	}
	f := link.NewFrame(0) // a minimal packet for the error to quote
	udp := wire.UDP{SrcPort: peer.Port(), DstPort: c.local.Port()}
	udp.Put(f.Prepend(wire.UDPLen))
	ip := ipHeader{ttl: defaultTTL, proto: wire.ProtoUDP, src: peer.Addr(), dst: c.local.Addr()}
	ip.put(f)
	about := bytes.Clone(f.Bytes())
	f.Free()
	c.home.post(func(sh *shard) { sh.sendPortUnreachable(about) })
}

// TCPRequest is a connection attempt that a forwarder decides.
type TCPRequest struct {
	shard   *shard
	id      tcp.ID
	syn     tcp.Segment
	decided atomic.Bool
}

// Local returns the address that the peer connects to.
func (r *TCPRequest) Local() netip.AddrPort { return r.id.Local }

// Remote returns the address of the peer.
func (r *TCPRequest) Remote() netip.AddrPort { return r.id.Remote }

// inputTCP passes a connection attempt to the forwarder. It returns false if the segment must be answered with a reset.
func (fw *forwarding) inputTCP(sh *shard, id tcp.ID, p *packet, seg *tcp.Segment) bool {
	handler := sh.stack.forwarder.TCP
	if seg.Flags.Has(wire.RST) {
		return true
	}
	if handler == nil || !seg.Flags.Has(wire.SYN) || seg.Flags.Has(wire.ACK) {
		return false
	}
	key := flowOf(id.Local, id.Remote)
	if fw.pending[key] != nil {
		return true
	}
	if !sh.beginForward() {
		return true
	}
	r := &TCPRequest{shard: sh, id: id, syn: *seg}
	r.syn.Payload = nil
	if fw.pending == nil {
		fw.pending = make(map[flow]*TCPRequest)
	}
	fw.pending[key] = r
	sh.stack.crew.Start(func() {
		handler(r)
		r.Reject()
	})
	return true
}

// decide reports whether the caller is the first to decide the request.
func (r *TCPRequest) decide() bool {
	if r.decided.Swap(true) {
		return false
	}
	r.shard.stack.forwards.Add(-1)
	return true
}

// beginForward counts a new request. It returns false if there are too many.
func (sh *shard) beginForward() bool {
	if sh.stack.forwards.Add(1) > maxForward {
		sh.stack.forwards.Add(-1)
		sh.tally.count(ForwardOverflow)
		return false
	}
	return true
}

// Accept completes the handshake. The connection can be used at once. Errors: ErrClosed, also if the request has been decided.
func (r *TCPRequest) Accept(o TCPOptions) (*TCPConn, error) {
	if !r.decide() {
		return nil, ErrClosed
	}
	var c *TCPConn
	r.shard.request(func(sh *shard) {
		delete(sh.forward.pending, flowOf(r.id.Local, r.id.Remote))
		if sh.closing {
			return
		}
		c = sh.newConn(r.id, o)
		key := sh.stack.key
		c.machine = tcp.Accept(sh.now, &sh.tcpConfig, r.id, key.ISN(sh.now, r.id), key.TimestampOffset(r.id), sh.mss(nil, r.id), &r.syn, &c.toSend, (*arriving)(c))
		sh.tally.count(TCPPassiveOpens)
		sh.add(c)
	})
	if c == nil {
		return nil, ErrClosed
	}
	return c, nil
}

// Reject rejects the connection with a reset. It does nothing if the request has been decided.
func (r *TCPRequest) Reject() {
	if !r.decide() {
		return
	}
	r.shard.post(func(sh *shard) {
		delete(sh.forward.pending, flowOf(r.id.Local, r.id.Remote))
		var h wire.TCP
		if tcp.ResetFor(&r.syn, &h) {
			sh.sendStateless(nil, r.id, &h)
		}
	})
}
