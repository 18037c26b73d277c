package stack

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/stack/icmp"
	"loam/stack/port"
	"loam/wire"
)

// MaxPing is the most data that an echo request carries.
const MaxPing = wire.MaxIPv4 - wire.IPv4MinLen - wire.ICMPv4Len

// Pinger is a socket for ICMP echo, as Linux's ping sockets are: the stack
// chooses the identifier, and replies with it come back. Every shard knows it.
type Pinger struct {
	watcher
	stack   *Stack
	binding *port.Binding
	id      uint16
	source  netip.Addr // zero: the path's
	readers waiter
	queue   datagramQueue
	sending sendBuffer
	failure atomic.Pointer[error]

	mu     sync.Mutex
	closed bool
}

// ListenPing makes a Pinger that sends from source, or from the best address if
// it is the zero Addr. id asks for an identifier; 0 means one that is free.
// Errors: ErrInUse, ErrNotAvailable, ErrFamily.
func (s *Stack) ListenPing(source netip.Addr, id uint16) (*Pinger, error) {
	local, err := s.checkLocal(netip.AddrPortFrom(source, id))
	if err != nil {
		return nil, err
	}
	p := &Pinger{stack: s}
	if !local.Addr().IsUnspecified() {
		p.source = local.Addr()
	}
	p.queue.limit = defaultDatagramBuffer
	all := netip.AddrPortFrom(netip.IPv6Unspecified(), id) // identifiers are one set for both versions
	if p.binding, err = s.ports.bind(wire.ProtoICMP, all, port.Options{}); err != nil {
		return nil, err
	}
	p.id = p.binding.Local().Port()
	if !s.enter(func(sh *shard) { sh.pings[p.id] = p }) {
		p.Close()
		return nil, ErrClosed
	}
	return p, nil
}

// ID is the identifier of its requests.
func (p *Pinger) ID() uint16 { return p.id }

// Source is the address that was asked for, or the zero Addr.
func (p *Pinger) Source() netip.Addr { return p.source }

// Send sends a request with a sequence number and data. Errors: ErrWouldBlock
// when the device does not keep up, ErrClosed, ErrNetUnreachable,
// ErrMessageTooLong, ErrFamily, and what an ICMP error said about an earlier
// request.
func (p *Pinger) Send(dst netip.Addr, seq uint16, data []byte) error {
	if err := p.Err(); err != nil {
		return err
	}
	t := p.stack.tables.Load()
	dst, err := t.normalZone(normalRemote(netip.AddrPortFrom(dst, 0)).Addr())
	switch {
	case p.isClosed():
		return ErrClosed
	case err != nil:
		return err
	case !dst.IsValid() || p.source.IsValid() && p.source.Is4() != dst.Is4():
		return ErrFamily
	case len(data) > MaxPing:
		return ErrMessageTooLong
	case !p.sending.room(defaultSendBuffer):
		return ErrWouldBlock
	}
	path, err := t.route(p.source, dst)
	if err != nil {
		return err
	}
	src := p.source
	if !src.IsValid() {
		src = path.source
	}
	f, err := p.request(&path, src, dst, seq, data)
	if err != nil {
		return err
	}
	p.stack.tally.count(ICMPSent)
	out := outgoing{frame: f, path: path, owner: p, size: f.Cap()}
	p.sending.take(out.size)
	p.stack.shardFor(netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)).submit(&out)
	return nil
}

// request makes the packet of an echo request.
func (p *Pinger) request(path *path, src, dst netip.Addr, seq uint16, data []byte) (*link.Frame, error) {
	rest := wire.EchoRest(p.id, seq)
	switch {
	case dst.Is4():
		return p.stack.icmpPacket(src, dst, 0, wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: rest}, data), nil
	case src.IsUnspecified():
		return nil, ErrNotAvailable
	}
	p.stack.narrow6(path, dst)
	return icmpPacket6(src, dst, 0, wire.ICMPv6{Type: wire.ICMPv6Echo, Rest: rest}, data), nil
}

// sent implements datagramOwner.
func (p *Pinger) sent(size int) {
	if p.sending.give(size) {
		p.tell(Writable)
	}
}

// TryReceive takes the oldest reply: its data, and in info who sent it (From)
// and the sequence number (From's port). Errors: ErrWouldBlock, ErrClosed, and
// what an ICMP error said about a request.
func (p *Pinger) TryReceive(b []byte) (int, Datagram, error) {
	if err := p.Err(); err != nil {
		return 0, Datagram{}, err
	}
	if n, info, ok := p.queue.take(b); ok {
		return n, info, nil
	}
	if p.isClosed() {
		return 0, Datagram{}, ErrClosed
	}
	return 0, Datagram{}, ErrWouldBlock
}

// Receive waits for a reply: see TryReceive.
func (p *Pinger) Receive(b []byte) (int, Datagram, error) {
	r, err := await(&p.readers, func() (received, error) {
		n, info, err := p.TryReceive(b)
		return received{n, info}, err
	})
	return r.n, r.info, err
}

// SetDeadline bounds Receive.
func (p *Pinger) SetDeadline(t time.Time) { p.readers.setDeadline(t) }

// Err returns and clears the error that is waiting.
func (p *Pinger) Err() error {
	if e := p.failure.Swap(nil); e != nil {
		return *e
	}
	return nil
}

// Events is what holds now.
func (p *Pinger) Events() Events {
	var e Events
	if p.sending.room(defaultSendBuffer) {
		e |= Writable
	}
	if n, _ := p.queue.len(); n > 0 || p.failure.Load() != nil || p.isClosed() {
		e |= Readable
	}
	return e
}

func (p *Pinger) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Close closes the socket.
func (p *Pinger) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	p.closed = true
	p.mu.Unlock()
	p.stack.onEach(func(sh *shard) { delete(sh.pings, p.id) })
	p.stack.ports.release(p.binding)
	p.queue.close()
	p.readers.ring()
	p.readers.close()
	p.tell(Readable | Hangup)
	return nil
}

// PingReply is the answer to Stack.Ping.
type PingReply struct {
	From netip.Addr
	Len  int // bytes of data
	TTL  uint8
	RTT  time.Duration
}

// Ping sends one echo request with size bytes of data and waits for the reply,
// until ctx ends.
func (s *Stack) Ping(ctx context.Context, dst netip.Addr, size int) (PingReply, error) {
	p, err := s.ListenPing(netip.Addr{}, 0)
	if err != nil {
		return PingReply{}, err
	}
	defer p.Close()
	stop := context.AfterFunc(ctx, func() { p.Close() })
	defer stop()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i)
	}
	began := time.Now()
	if err := p.Send(dst, 1, data); err != nil {
		return PingReply{}, err
	}
	n, info, err := p.Receive(data)
	if ctx.Err() != nil {
		return PingReply{}, context.Cause(ctx)
	}
	if err != nil {
		return PingReply{}, err
	}
	return PingReply{From: info.From.Addr(), Len: n, TTL: info.TTL, RTT: time.Since(began)}, nil
}

// inputEchoReply delivers a reply to who asked.
func (sh *shard) inputEchoReply(p *packet, id, seq uint16, data []byte) {
	pinger := sh.pings[id]
	if pinger == nil || pinger.source.IsValid() && pinger.source.WithZone("") != p.dst {
		sh.tally.count(ICMPIgnored)
		return
	}
	f := link.NewFrame(len(data))
	copy(f.Bytes(), data)
	info := Datagram{From: netip.AddrPortFrom(p.ifc.scoped(p.src), seq), To: netip.AddrPortFrom(p.dst, id), Len: len(data), Interface: p.ifc.index, TTL: p.ttl, TOS: p.tos}
	if !pinger.queue.put(f, info) {
		f.Free()
		sh.tally.count(ICMPIgnored)
		return
	}
	sh.tally.count(ICMPEchoReply)
	pinger.readers.ring()
	pinger.tell(Readable)
}

// pingError tells a Pinger that a request of its did not get through.
func (sh *shard) pingError(q *icmp.Quote, kind icmp.Kind) bool {
	pinger := sh.pings[q.EchoID]
	err := kindError(kind)
	if pinger == nil || err == nil {
		return false
	}
	pinger.failure.Store(&err)
	pinger.readers.ring()
	pinger.tell(Readable | Error)
	return true
}

// PingRequest is an echo request to an address that is not the stack's, for a
// forwarder.
type PingRequest struct {
	shard    *shard
	header   wire.ICMPv4
	tos      uint8
	Src, Dst netip.Addr // who asks whom
	Data     []byte
}

// Seq is the sequence number.
func (r *PingRequest) Seq() uint16 { return r.header.EchoSeq() }

// Reply answers in Dst's name, with the data of the request.
func (r *PingRequest) Reply() {
	r.shard.post(func(sh *shard) { sh.sendEchoReply(r.Dst, r.Src, r.tos, r.header, r.Data) })
}

// forwardPing gives a request to the forwarder.
func (sh *shard) forwardPing(p *packet, h wire.ICMPv4, data []byte) {
	handler := sh.stack.forwarder.Ping
	if handler == nil {
		sh.tally.count(ICMPIgnored)
		return
	}
	if !sh.beginForward() {
		return
	}
	r := &PingRequest{shard: sh, header: h, tos: p.tos, Src: p.src, Dst: p.dst, Data: append([]byte(nil), data...)}
	sh.stack.crew.Start(func() {
		defer sh.stack.forwards.Add(-1)
		handler(r)
	})
}
