package stack

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/link"
	"loam/stack/queue"
	"loam/stack/socket"
)

// datagramSocket is the part that all datagram sockets share: local and remote address, options, received datagrams,
// and datagrams being sent. UDPConn, Pinger and RawConn embed it.
type datagramSocket struct {
	watcher
	*Memberships
	stack      *Stack
	network    string         // name of the network as in package net, for errors
	local      netip.AddrPort // local address; the meaning of the port depends on the protocol
	v6Only     bool           // value of UDPOptions.V6Only when the socket was bound
	readers    socket.Waiter
	writers    socket.Waiter
	queue      datagramQueue
	sending    queue.Budget
	failure    atomic.Pointer[error]
	errors     queue.Charged[DatagramError] // errors that TakeError returns
	pathReport atomic.Pointer[PathMTU]      // for TakePathMTU; only the last report is kept

	mu      sync.Mutex // guards the fields below
	options UDPOptions
	remote  netip.AddrPort // address of the peer, if the socket is connected
	closed  bool
	peer    atomic.Pointer[netip.AddrPort] // copy of remote that shards read

	toMany bool // the bound address is a multicast or broadcast address
	filter atomic.Pointer[Filter]
	device atomic.Pointer[Interface] // interface that the socket is bound to: see SetDevice
}

// init sets the initial state of a socket.
func (c *datagramSocket) init(s *Stack, network string, local netip.AddrPort, o UDPOptions) {
	c.stack, c.network, c.local, c.v6Only, c.options = s, network, local, o.V6Only, o
	c.toMany = local.Addr().IsMulticast() || s.tables.Load().local[local.Addr()].broadcast
	c.Memberships = o.Groups
	if o.Groups == nil {
		c.Memberships = s.NewMemberships()
	}
	c.queue.SetLimit(defaultDatagramBuffer)
	c.device.Store(o.Device)
	if o.ReceiveBuffer != 0 {
		c.queue.SetLimit(o.ReceiveBuffer)
	}
}

// SetFilter installs f as the filter of datagrams that arrive from now on; nil removes the filter.
func (c *datagramSocket) SetFilter(f Filter) {
	if f == nil {
		c.filter.Store(nil)
		return
	}
	c.filter.Store(&f)
}

// Connect sets the only peer: Write sends to it, and only its datagrams are received. The
// zero AddrPort disconnects the socket. Errors: ErrNetUnreachable, ErrFamily, ErrClosed, ErrAccess for a broadcast without the option.
func (c *datagramSocket) Connect(remote netip.AddrPort) error {
	if remote.IsValid() {
		t := c.stack.tables.Load()
		var err error
		if remote, err = t.destination(c.local.Addr(), remote, c.v6Only); err != nil {
			return err
		}
		switch _, err := t.route(c.source(), remote.Addr()); {
		case err != nil:
			return err
		case (remote.Addr() == limitedBroadcast || t.local[remote.Addr()].broadcast) && !c.Options().Broadcast:
			return ErrAccess
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

// source returns the bound address if packets can be sent from it, otherwise the zero Addr.
func (c *datagramSocket) source() netip.Addr {
	if c.local.Addr().IsUnspecified() || c.toMany {
		return netip.Addr{}
	}
	return c.local.Addr()
}

// LocalAddrPort returns the bound address and port. If the socket is connected and bound
// to no specific address, the address is the source address of its datagrams.
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

// RemoteAddrPort returns the peer of a connected socket, otherwise the zero AddrPort.
func (c *datagramSocket) RemoteAddrPort() netip.AddrPort {
	if p := c.peer.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}

// Options returns a copy of the options.
func (c *datagramSocket) Options() UDPOptions {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options
}

// SetOptions calls f to change the options. Errors: ErrInvalid if f changes Groups, which
// is fixed when the socket is created; the options then stay unchanged.
func (c *datagramSocket) SetOptions(f func(*UDPOptions)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.options
	f(&c.options)
	if g := c.options.Groups; g != nil && g != c.Memberships {
		c.options = before
		return fmt.Errorf("set options: Groups are for a socket that is yet to be made: use JoinGroup: %w", ErrInvalid)
	}
	if before.QueueErrors && !c.options.QueueErrors || before.QueueErrors6 && !c.options.QueueErrors6 {
		c.errors.Clear()
	}
	if n := c.options.ReceiveBuffer; n != 0 {
		c.queue.SetLimit(n)
	}
	return nil
}

// TryReadFrom copies the oldest datagram to p and removes it. Bytes that do not fit are lost; Datagram.Len is the full
// length. Errors: ErrWouldBlock, ErrClosed, and a pending ICMP error about an earlier datagram of a connected socket.
func (c *datagramSocket) TryReadFrom(p []byte) (int, Datagram, error) { return c.read(p, c.queue.Take) }

// PeekFrom is TryReadFrom without removing the datagram.
func (c *datagramSocket) PeekFrom(p []byte) (int, Datagram, error) { return c.read(p, c.queue.Peek) }

// read returns the pending error if there is one, otherwise the datagram that the
// function from returns. Errors: ErrWouldBlock, ErrClosed.
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

// wants truncates a datagram to the length that the filter returns, and reports whether the datagram is delivered.
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

// take queues a datagram and notifies the program. It returns false if the receive buffer
// is full; the caller then still owns the frame.
func (c *datagramSocket) take(f *link.Frame, info Datagram) bool {
	if !c.queue.Put(f, info) {
		return false
	}
	c.readers.Ring()
	c.reportEvents(Readable)
	return true
}

// Err returns and clears the pending error (SO_ERROR).
func (c *datagramSocket) Err() error {
	if c.failure.Load() == nil {
		return nil
	}
	if p := c.failure.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// Waiting returns the number of datagrams that can be read now, and the length of the first datagram in bytes.
func (c *datagramSocket) Waiting() (count, first int) { return c.queue.Len() }

// Events returns the conditions that hold now.
func (c *datagramSocket) Events() Events {
	var e Events
	if n, _ := c.queue.Len(); n > 0 {
		e |= Readable
	}
	if c.hasRoom() {
		e |= Writable
	}
	if c.failure.Load() != nil {
		e |= Error | Readable | Writable
	}
	if c.errors.Any() {
		e |= Error
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		e |= Readable | Writable | Hangup
	}
	return e
}

// hasRoom reports whether a datagram may be sent now. If not, Writable will be reported later.
func (c *datagramSocket) hasRoom() bool {
	limit := defaultSendBuffer
	if n := c.Options().SendBuffer; n != 0 {
		limit = n
	}
	return c.sending.Room(limit)
}

// sent implements datagramOwner.
func (c *datagramSocket) sent(size int) {
	if c.sending.Give(size) {
		c.writers.Ring()
		c.reportEvents(Writable)
	}
}

// fail stores an error for the program and notifies it.
func (c *datagramSocket) fail(err error) {
	c.failure.Store(&err)
	c.readers.Ring()
	c.writers.Ring()
	c.reportEvents(Error | Readable | Writable)
}

// closeBy closes the socket. The function leave must remove it from the shards' tables.
// Errors: ErrClosed if the socket is already closed.
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
	c.queue.Close()
	c.readers.Ring()
	c.writers.Ring()
	c.readers.Close()
	c.writers.Close()
	c.reportEvents(Readable | Writable | Hangup)
	return nil
}
