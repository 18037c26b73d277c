package stack

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/link"
	"loam/stack/port"
	"loam/wire"
)

// MaxUDP and MaxUDP6 are the largest payloads of a UDP datagram over IPv4 and IPv6.
const (
	MaxUDP  = wire.MaxIPv4 - wire.IPv4MinLen - wire.UDPLen
	MaxUDP6 = wire.MaxIPv6Payload - wire.UDPLen
)

// UDPOptions are the options of a UDP socket. The zero value is the default of
// each; socket(7) and ip(7) name what is in the comments.
type UDPOptions struct {
	Broadcast     bool  // SO_BROADCAST: sending to broadcast addresses is allowed
	ReuseAddr     bool  // SO_REUSEADDR
	ReusePort     bool  // SO_REUSEPORT
	TTL           uint8 // IP_TTL; zero: 64
	GroupTTL      uint8 // IP_MULTICAST_TTL: the same for groups; zero: 1
	TOS           uint8 // IP_TOS
	HopLimit      uint8 // IPV6_UNICAST_HOPS; zero: 64
	GroupHops     uint8 // IPV6_MULTICAST_HOPS: the same for groups; zero: 1
	TrafficClass  uint8 // IPV6_TCLASS
	V6Only        bool  // IPV6_V6ONLY: bound to all addresses of IPv6, not those of IPv4 as well
	ReceiveBuffer int   // SO_RCVBUF; zero: 2 MiB
	SendBuffer    int   // SO_SNDBUF; zero: 1 MiB
}

// UDPConn is a UDP socket. Every shard knows it, since its datagrams may belong
// to any; a program builds a datagram on its own goroutine, checksum included,
// and leaves it to the shard of the flow.
//
// The methods here never block: ReadFrom and WriteTo are in net.go.
type UDPConn struct {
	watcher
	stack   *Stack
	home    *shard // the only shard that knows it: a forwarder's socket; nil: all
	local   netip.AddrPort
	v6Only  bool          // as it was when the socket was bound
	port    *port.Binding // nil: a forwarder's
	readers waiter
	writers waiter
	queue   datagramQueue
	sending sendBuffer
	failure atomic.Pointer[error]

	mu      sync.Mutex // guards what follows
	options UDPOptions
	remote  netip.AddrPort // of a connected socket
	groups  []membership
	closed  bool
	peer    atomic.Pointer[netip.AddrPort] // copy of remote for the shards

	filter atomic.Pointer[Filter]
}

// Filter says how many bytes of a datagram, which begins with its UDP header, a socket
// keeps; 0: it does not get the datagram. Several shards may call it at once.
type Filter func(datagram []byte) uint32

// SetFilter has f look at all datagrams that arrive from now on; nil: nobody.
func (c *UDPConn) SetFilter(f Filter) {
	if f == nil {
		c.filter.Store(nil)
		return
	}
	c.filter.Store(&f)
}

// filtered cuts a payload to what the filter keeps, and reports whether it keeps any. Its
// header is put before it again meanwhile, without the checksum.
func (c *UDPConn) filtered(f *link.Frame, info *Datagram) bool {
	filter := c.filter.Load()
	if filter == nil {
		return true
	}
	h := wire.UDP{SrcPort: info.From.Port(), DstPort: info.To.Port(), PayloadLen: f.Len()}
	h.Put(f.Prepend(wire.UDPLen))
	n := (*filter)(f.Bytes())
	f.TrimFront(wire.UDPLen)
	if keep := int(max(n, wire.UDPLen) - wire.UDPLen); keep < f.Len() {
		f.Resize(keep)
		info.Len = keep
	}
	return n > 0
}

// ListenUDP makes a socket bound to local; the zero address means any, port 0
// one that is free. Errors: ErrInUse, ErrNotAvailable, ErrFamily.
func (s *Stack) ListenUDP(local netip.AddrPort, o UDPOptions) (*UDPConn, error) {
	local, err := s.checkLocal(local)
	if err != nil {
		return nil, err
	}
	b, err := s.ports.bind(wire.ProtoUDP, local, o.sharing())
	if err != nil {
		return nil, err
	}
	c := s.newUDPConn(b.Local(), o)
	c.port = b
	if !s.enter(c.enter) {
		c.Close()
		return nil, ErrClosed
	}
	return c, nil
}

func (s *Stack) newUDPConn(local netip.AddrPort, o UDPOptions) *UDPConn {
	c := &UDPConn{stack: s, local: local, v6Only: o.V6Only, options: o}
	c.queue.limit = defaultDatagramBuffer
	if o.ReceiveBuffer != 0 {
		c.queue.limit = o.ReceiveBuffer
	}
	return c
}

func (c *UDPConn) enter(sh *shard) {
	for _, at := range keys(c.local, c.v6Only) {
		sh.sockets[at] = append(sh.sockets[at], c)
	}
}

func (c *UDPConn) leave(sh *shard) {
	for _, at := range keys(c.local, c.v6Only) {
		if list := removeOne(sh.sockets[at], c); len(list) == 0 {
			delete(sh.sockets, at)
		} else {
			sh.sockets[at] = list
		}
	}
}

// Connect makes remote the only peer: where Write sends, and who is heard. The
// zero AddrPort undoes it. Errors: ErrNetUnreachable, ErrClosed.
func (c *UDPConn) Connect(remote netip.AddrPort) error {
	if remote.IsValid() {
		t := c.stack.tables.Load()
		var err error
		if remote, err = t.destination(c.local.Addr(), remote, c.v6Only); err != nil {
			return err
		}
		if _, err := t.route(c.source(), remote.Addr()); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.remote = remote
	if remote.IsValid() {
		c.peer.Store(&remote)
	} else {
		c.peer.Store(nil)
	}
	return nil
}

// source is the bound address to send from, or the zero Addr.
func (c *UDPConn) source() netip.Addr {
	if c.local.Addr().IsUnspecified() || c.local.Addr().IsMulticast() {
		return netip.Addr{}
	}
	return c.local.Addr()
}

// LocalAddrPort is where the socket is bound; of a connected one, with the
// source address that its datagrams carry.
func (c *UDPConn) LocalAddrPort() netip.AddrPort {
	peer := c.peer.Load()
	if peer == nil || c.source().IsValid() {
		return c.local
	}
	p, err := c.stack.tables.Load().route(netip.Addr{}, peer.Addr())
	if err != nil {
		return c.local
	}
	return netip.AddrPortFrom(p.ifc.scoped(p.source), c.local.Port())
}

// RemoteAddrPort is the peer of a connected socket, else the zero AddrPort.
func (c *UDPConn) RemoteAddrPort() netip.AddrPort {
	if p := c.peer.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}

// Options returns the options.
func (c *UDPConn) Options() UDPOptions {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options
}

// SetOptions has f change the options.
func (c *UDPConn) SetOptions(f func(*UDPOptions)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.options)
	if n := c.options.ReceiveBuffer; n != 0 {
		c.queue.mu.Lock()
		c.queue.limit = n
		c.queue.mu.Unlock()
	}
	return nil
}

// TryReadFrom takes the oldest datagram; what does not fit into p is lost, and
// Datagram.Len says how long it was. Errors: ErrWouldBlock, ErrClosed, and what
// an ICMP error said about an earlier datagram of a connected socket.
func (c *UDPConn) TryReadFrom(p []byte) (int, Datagram, error) { return c.read(p, c.queue.take) }

// PeekFrom is TryReadFrom but leaves the datagram there.
func (c *UDPConn) PeekFrom(p []byte) (int, Datagram, error) { return c.read(p, c.queue.peek) }

func (c *UDPConn) read(p []byte, from func([]byte) (int, Datagram, bool)) (int, Datagram, error) {
	if err := c.Err(); err != nil {
		return 0, Datagram{}, err
	}
	if n, info, ok := from(p); ok {
		return n, info, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, Datagram{}, ErrClosed
	}
	return 0, Datagram{}, ErrWouldBlock
}

// Err returns and clears the error that is waiting (SO_ERROR).
func (c *UDPConn) Err() error {
	if c.failure.Load() == nil {
		return nil
	}
	if p := c.failure.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// Waiting is how many datagrams could be read now, and the length of the first.
func (c *UDPConn) Waiting() (count, first int) { return c.queue.len() }

// Events is what holds now.
func (c *UDPConn) Events() Events {
	var e Events
	if n, _ := c.queue.len(); n > 0 {
		e |= Readable
	}
	if c.hasRoom() {
		e |= Writable
	}
	if c.failure.Load() != nil {
		e |= Error | Readable | Writable
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		e |= Readable | Writable | Hangup
	}
	return e
}

// hasRoom reports whether a datagram may be sent now, and otherwise arranges
// that Writable is told.
func (c *UDPConn) hasRoom() bool {
	limit := defaultSendBuffer
	if n := c.Options().SendBuffer; n != 0 {
		limit = n
	}
	return c.sending.room(limit)
}

// TryWriteTo sends a datagram to to, or to the peer of a connected socket when
// to is the zero AddrPort. Errors: ErrWouldBlock, ErrMessageTooLong,
// ErrNoDestination, ErrNetUnreachable, ErrAccess for broadcast without the
// option, ErrClosed, and what an ICMP error said about an earlier datagram of a
// connected socket.
func (c *UDPConn) TryWriteTo(p []byte, to netip.AddrPort) (int, error) {
	return c.TryWriteBy(p, to, UDPSend{})
}

// UDPSend says how one datagram goes, where that is not by the socket and its options:
// the control messages of ip(7) and RFC 3542.
type UDPSend struct {
	Source netip.Addr // an address of this host; zero: the socket's
	On     *Interface // for groups and link-local addresses; nil: by the routes
	TTL    uint8      // or hop limit; zero: the socket's
	TOS    uint8      // or traffic class
	HasTOS bool       // TOS is meant, and not the socket's

	// Segment is how long each datagram is, of several that the bytes are cut into, but
	// for the last; 0: there is one (UDP_SEGMENT).
	Segment int
}

// maxSegments is how many datagrams one call sends (UDP_MAX_SEGMENTS of linux/udp.h).
const maxSegments = 128

// header is how far a datagram goes, and how, by the options.
func (o *UDPOptions) header(src, dst netip.Addr) ipHeader {
	h := ipHeader{proto: wire.ProtoUDP, src: src, dst: dst, ttl: o.TTL, tos: o.TOS}
	group := o.GroupTTL
	if dst.Is6() {
		h.ttl, h.tos, group = o.HopLimit, o.TrafficClass, o.GroupHops
	}
	switch {
	case dst.IsMulticast():
		h.ttl = max(group, 1)
	case h.ttl == 0:
		h.ttl = defaultTTL
	}
	return h
}

// apply changes what the options have set.
func (o *UDPSend) apply(h *ipHeader) {
	if o.TTL != 0 {
		h.ttl = o.TTL
	}
	if o.HasTOS {
		h.tos = o.TOS
	}
}

// ownSource checks the source of a datagram. Errors: ErrInvalid if it is not one of ours,
// or not of the destination's family.
func (t *tables) ownSource(source, dst netip.Addr) (netip.Addr, error) {
	source = source.Unmap().WithZone("")
	l, ours := t.local[source]
	if source.Is4() != dst.Is4() || l.broadcast || !ours && !(source.Is4() && source.IsLoopback()) {
		return source, ErrInvalid
	}
	return source, nil
}

// TryWriteBy is TryWriteTo for a datagram that goes its own way. Errors besides its:
// ErrInvalid for a source that is not ours, or for too many segments.
func (c *UDPConn) TryWriteBy(p []byte, to netip.AddrPort, by UDPSend) (int, error) {
	if err := c.Err(); err != nil {
		return 0, err
	}
	c.mu.Lock()
	options, remote, closed := c.options, c.remote, c.closed
	c.mu.Unlock()
	t := c.stack.tables.Load()
	var err error
	if to.IsValid() {
		remote, err = t.destination(c.local.Addr(), to, c.v6Only)
	}
	switch {
	case err != nil && !closed:
		return 0, err
	case closed:
		return 0, ErrClosed
	case !remote.IsValid():
		return 0, ErrNoDestination
	case remote.Port() == 0:
		return 0, ErrInvalid
	case len(p) > maxUDP(remote.Addr()):
		return 0, ErrMessageTooLong
	case !c.hasRoom():
		return 0, ErrWouldBlock
	}
	if by.Segment <= 0 || by.Segment >= len(p) {
		by.Segment = max(len(p), 1)
	} else if len(p) > by.Segment*maxSegments {
		return 0, ErrInvalid
	}
	for done := 0; ; {
		segment := p[done:min(done+by.Segment, len(p))]
		out, err := c.build(t, segment, remote, &options, by)
		if err != nil {
			return 0, err
		}
		c.stack.shardFor(out.local, remote).submit(&out)
		if done += len(segment); done == len(p) {
			return done, nil
		}
	}
}

// pathTo finds the source address and the path of a datagram.
func (c *UDPConn) pathTo(t *tables, dst netip.Addr, by *UDPSend) (src netip.Addr, p path, err error) {
	src = c.source()
	if by.Source.IsValid() {
		if src, err = t.ownSource(by.Source, dst); err != nil {
			return src, p, err
		}
	}
	if by.On != nil && dst.Is4() && dst.IsMulticast() {
		p = t.pathOn(by.On, dst)
	} else {
		if by.On != nil && dst.Zone() == "" && (isScoped(dst) || dst.IsMulticast()) {
			dst = dst.WithZone(by.On.name)
		}
		p, err = t.route(src, dst)
	}
	if !src.IsValid() {
		src = p.source
	}
	return src, p, err
}

// build makes the IP packet of a datagram.
func (c *UDPConn) build(t *tables, p []byte, remote netip.AddrPort, o *UDPOptions, by UDPSend) (outgoing, error) {
	src, path, err := c.pathTo(t, remote.Addr(), &by)
	if err != nil {
		return outgoing{}, err
	}
	broadcast := remote.Addr() == limitedBroadcast || t.local[remote.Addr()].broadcast
	if broadcast && !o.Broadcast {
		return outgoing{}, ErrAccess
	}
	header := o.header(src, remote.Addr())
	headerLen := wire.IPv4MinLen
	if src.Is6() {
		if src.IsUnspecified() {
			return outgoing{}, ErrNotAvailable
		}
		c.stack.narrow6(&path, remote.Addr())
		headerLen = wire.IPv6Len
		header.label = c.stack.flowLabel(netip.AddrPortFrom(src, c.local.Port()), remote)
	} else {
		header.id = c.stack.nextID(src, remote.Addr(), wire.ProtoUDP)
	}
	by.apply(&header)
	f := link.NewFrame(len(p))
	copy(f.Bytes(), p)
	h := wire.UDP{SrcPort: c.local.Port(), DstPort: remote.Port(), PayloadLen: len(p)}
	h.Put(f.Prepend(wire.UDPLen))
	whole := f.Len()+headerLen <= path.mtu
	finishUDP(f, path.ifc, src, remote.Addr(), whole)
	header.put(f)
	size := f.Cap()
	c.sending.take(size)
	c.stack.tally.count(UDPSent)
	return outgoing{frame: f, path: path, owner: c, size: size, local: netip.AddrPortFrom(src, c.local.Port())}, nil
}

// finishUDP fills in the checksum of a datagram, or leaves it to the device,
// which can do it only for a datagram that is not going to be fragmented.
func finishUDP(f *link.Frame, ifc *Interface, src, dst netip.Addr, whole bool) {
	b := f.Bytes()
	if whole && ifc.offloads.Has(link.OffloadChecksum) {
		f.NeedsChecksum, f.CsumStart, f.CsumOffset = true, 0, 6
		sum := wire.PseudoSum(wire.ProtoUDP, src, dst, len(b))
		b[6], b[7] = byte(sum>>8), byte(sum)
		return
	}
	wire.PutUDPChecksum(b, src, dst)
}

// sent implements datagramOwner.
func (c *UDPConn) sent(size int) {
	if c.sending.give(size) {
		c.writers.ring()
		c.tell(Writable)
	}
}

// Close closes the socket. What has been written is still sent.
func (c *UDPConn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("close", c.RemoteAddrPort(), ErrClosed)
	}
	c.closed = true
	c.leaveGroups()
	c.mu.Unlock()
	if c.home != nil {
		c.home.request(c.leave)
	} else {
		c.stack.onEach(c.leave)
		c.stack.ports.release(c.port)
	}
	c.queue.close()
	c.readers.ring()
	c.writers.ring()
	c.readers.close()
	c.writers.close()
	c.tell(Readable | Writable | Hangup)
	return nil
}

// fail leaves an error for the program of a connected socket.
func (c *UDPConn) fail(err error) {
	c.failure.Store(&err)
	c.readers.ring()
	c.writers.ring()
	c.tell(Error | Readable | Writable)
}

// normalRemote is the destination that is meant: IPv4-mapped addresses are
// IPv4, and the unspecified address is this host (as on Linux).
func normalRemote(a netip.AddrPort) netip.AddrPort {
	addr := a.Addr().Unmap()
	switch addr {
	case netip.IPv4Unspecified():
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case netip.IPv6Unspecified():
		addr = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(addr, a.Port())
}
