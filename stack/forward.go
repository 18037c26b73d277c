package stack

import (
	"bytes"
	"net/netip"
	"sync/atomic"

	"loam/link"
	"loam/stack/tcp"
	"loam/wire"
)

// A gateway answers for addresses that are not its own: on an interface with
// AcceptAny, what no socket of the stack is for goes to a forwarder, which
// decides whether there is a connection.

// Forwarder takes what arrives for others. Each method is called on a goroutine
// of its own, and a field that is nil refuses.
type Forwarder struct {
	// TCP is asked for each connection attempt. Until it has called Accept or
	// Reject the peer gets no answer; returning without either rejects.
	TCP func(*TCPRequest)
	// UDP is given a socket for each new flow, connected to the peer and bound
	// to the address that the peer sent to; the first datagram arrives in it.
	// It should start a goroutine for the flow and return: until then the flow
	// counts as being decided.
	UDP func(*UDPConn)
	// Ping is given each echo request; Reply answers it.
	Ping func(*PingRequest)
}

// maxForward bounds the requests that a forwarder is working on, for each stack.
const maxForward = 1024

// Forward sets the forwarder of the stack. It must be called before the first
// interface with AcceptAny is attached.
func (s *Stack) Forward(f Forwarder) { s.forwarder = f }

// forwarding is a shard's part: which connection attempts are being decided, so
// that a repeated SYN is not a second one.
type forwarding struct {
	pending map[flow]*TCPRequest
}

// Refuse tells the peer of a forwarder's socket that nobody takes its datagrams:
// an ICMP "port unreachable" about one of them, as far as the rate limit allows.
// The socket stays open. A socket that is not connected has nobody to tell.
func (c *UDPConn) Refuse() {
	peer := c.peer.Load()
	if c.home == nil || peer == nil {
		return
	}
	f := link.NewFrame(0) // the front of what it sent, as far as that matters
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

// Local is the address that the peer wants to reach.
func (r *TCPRequest) Local() netip.AddrPort { return r.id.Local }

// Remote is the peer.
func (r *TCPRequest) Remote() netip.AddrPort { return r.id.Remote }

// inputTCP offers a segment to the forwarder. It returns false for what is to
// be reset.
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

// decide reports whether the caller is the one that decides.
func (r *TCPRequest) decide() bool {
	if r.decided.Swap(true) {
		return false
	}
	r.shard.stack.forwards.Add(-1)
	return true
}

// beginForward counts a request in, unless there are too many.
func (sh *shard) beginForward() bool {
	if sh.stack.forwards.Add(1) > maxForward {
		sh.stack.forwards.Add(-1)
		sh.tally.count(ForwardOverflow)
		return false
	}
	return true
}

// Accept completes the handshake; the connection may be used at once. Errors:
// ErrClosed.
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

// Reject refuses the connection with a reset. It does nothing after Accept.
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
