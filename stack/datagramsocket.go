package stack

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/link"
)

// datagramSocket is what the sockets for datagrams have in common, whatever these carry:
// where it is bound and connected, its options, what has arrived and what is on the way.
// UDPConn, Pinger and RawConn are made of one.
type datagramSocket struct {
	watcher
	*Memberships
	stack    *Stack
	network  string         // as package net names it: for errors
	local    netip.AddrPort // the port is what the protocol has for one
	v6Only   bool           // as it was when the socket was bound
	readers  waiter
	writers  waiter
	queue    datagramQueue
	sending  sendBuffer
	failure  atomic.Pointer[error]
	errors   errorQueue
	pathTold atomic.Pointer[PathMTU] // for TakePathMTU; only the last

	mu      sync.Mutex // guards what follows
	options UDPOptions
	remote  netip.AddrPort // of a connected socket
	closed  bool
	peer    atomic.Pointer[netip.AddrPort] // copy of remote for the shards

	filter atomic.Pointer[Filter]
	device atomic.Pointer[Interface] // see SetDevice
}

// init fills in what a socket begins with.
func (c *datagramSocket) init(s *Stack, network string, local netip.AddrPort, o UDPOptions) {
	c.stack, c.network, c.local, c.v6Only, c.options = s, network, local, o.V6Only, o
	c.Memberships = o.Groups
	if o.Groups == nil {
		c.Memberships = s.NewMemberships()
	}
	c.queue.limit = defaultDatagramBuffer
	c.device.Store(o.Device)
	if o.ReceiveBuffer != 0 {
		c.queue.limit = o.ReceiveBuffer
	}
}

// SetFilter has f look at all datagrams that arrive from now on; nil: nobody.
func (c *datagramSocket) SetFilter(f Filter) {
	if f == nil {
		c.filter.Store(nil)
		return
	}
	c.filter.Store(&f)
}

// Connect makes remote the only peer: where Write sends, and who is heard. The
// zero AddrPort undoes it. Errors: ErrNetUnreachable, ErrClosed.
func (c *datagramSocket) Connect(remote netip.AddrPort) error {
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
func (c *datagramSocket) source() netip.Addr {
	if c.local.Addr().IsUnspecified() || c.local.Addr().IsMulticast() {
		return netip.Addr{}
	}
	return c.local.Addr()
}

// LocalAddrPort is where the socket is bound; of a connected one, with the
// source address that its datagrams carry.
func (c *datagramSocket) LocalAddrPort() netip.AddrPort {
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
func (c *datagramSocket) RemoteAddrPort() netip.AddrPort {
	if p := c.peer.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}

// Options returns the options.
func (c *datagramSocket) Options() UDPOptions {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options
}

// SetOptions has f change the options.
func (c *datagramSocket) SetOptions(f func(*UDPOptions)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.options
	f(&c.options)
	if before.QueueErrors && !c.options.QueueErrors || before.QueueErrors6 && !c.options.QueueErrors6 {
		c.errors.clear()
	}
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
func (c *datagramSocket) TryReadFrom(p []byte) (int, Datagram, error) { return c.read(p, c.queue.take) }

// PeekFrom is TryReadFrom but leaves the datagram there.
func (c *datagramSocket) PeekFrom(p []byte) (int, Datagram, error) { return c.read(p, c.queue.peek) }

func (c *datagramSocket) read(p []byte, from func([]byte) (int, Datagram, bool)) (int, Datagram, error) {
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

// wants cuts a datagram to what the filter keeps of it, and reports whether it keeps any.
func (c *datagramSocket) wants(f *link.Frame, info *Datagram) bool {
	filter := c.filter.Load()
	if filter == nil {
		return true
	}
	n := (*filter)(f.Bytes())
	if keep := int(n); keep < f.Len() {
		f.Resize(keep)
		info.Len = keep
	}
	return n > 0
}

// take queues a datagram and tells the program; not where there is no room.
func (c *datagramSocket) take(f *link.Frame, info Datagram) bool {
	if !c.queue.put(f, info) {
		return false
	}
	c.readers.ring()
	c.tell(Readable)
	return true
}

// Err returns and clears the error that is waiting (SO_ERROR).
func (c *datagramSocket) Err() error {
	if c.failure.Load() == nil {
		return nil
	}
	if p := c.failure.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// Waiting is how many datagrams could be read now, and the length of the first.
func (c *datagramSocket) Waiting() (count, first int) { return c.queue.len() }

// Events is what holds now.
func (c *datagramSocket) Events() Events {
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
	if c.errors.any() {
		e |= Error
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
func (c *datagramSocket) hasRoom() bool {
	limit := defaultSendBuffer
	if n := c.Options().SendBuffer; n != 0 {
		limit = n
	}
	return c.sending.room(limit)
}

// sent implements datagramOwner.
func (c *datagramSocket) sent(size int) {
	if c.sending.give(size) {
		c.writers.ring()
		c.tell(Writable)
	}
}

// fail leaves an error for the program of a connected socket.
func (c *datagramSocket) fail(err error) {
	c.failure.Store(&err)
	c.readers.ring()
	c.writers.ring()
	c.tell(Error | Readable | Writable)
}

// closeBy closes the socket; leave takes it away from the shards. Errors: ErrClosed if it
// is closed already.
func (c *datagramSocket) closeBy(leave func()) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("close", c.RemoteAddrPort(), ErrClosed)
	}
	c.closed = true
	c.mu.Unlock()
	c.Memberships.Close()
	leave()
	c.queue.close()
	c.readers.ring()
	c.writers.ring()
	c.readers.close()
	c.writers.close()
	c.tell(Readable | Writable | Hangup)
	return nil
}
