package stack

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/stack/icmp"
)

// DatagramError is what a socket keeps of a datagram that did not get through (IP_RECVERR of
// ip(7), IPV6_RECVERR of ipv6(7)).
type DatagramError struct {
	Err        error          // what it means to the program
	Local      bool           // this host says so; else a message of ICMP does
	Type, Code uint8          // of the message
	Info       uint32         // the MTU where the datagram was too long, else what the message points at
	To         netip.AddrPort // where the datagram was to go
	Message    Datagram       // how the message came; From is who sent it
	Payload    []byte         // as much of the datagram as the message quotes, and what is behind it

	Extensions icmp.Extensions // of the message, behind the beginning of Payload: see UDPOptions.TellExtensions
}

// errorQueue holds these for a socket until the program takes them. Shards put, and programs
// put what is local.
type errorQueue struct {
	mu    sync.Mutex
	items []DatagramError
	size  int         // as charge counts
	some  atomic.Bool // there are any: asked for whenever the program polls
}

// charge is what one counts for in a receive buffer, in bytes.
func (e *DatagramError) charge() int {
	const fixed = 512 // about what Linux charges beside the payload
	return fixed + len(e.Payload)
}

// put keeps e, if there is room.
func (q *errorQueue) put(e DatagramError, limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size+e.charge() <= limit {
		q.items, q.size = append(q.items, e), q.size+e.charge()
		q.some.Store(true)
	}
}

// take returns the oldest, and the one that is the oldest then, if there is any.
func (q *errorQueue) take() (e DatagramError, next *DatagramError, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return e, nil, false
	}
	e = q.items[0]
	q.items[0] = DatagramError{}
	if q.items = q.items[1:]; len(q.items) > 0 {
		first := q.items[0]
		next = &first
	} else {
		q.items = nil
		q.some.Store(false)
	}
	q.size -= e.charge()
	return e, next, true
}

func (q *errorQueue) any() bool { return q.some.Load() }

func (q *errorQueue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.size = nil, 0
	q.some.Store(false)
}

// queuesErrors reports whether errors about datagrams to dst are kept.
func (o *UDPOptions) queuesErrors(dst netip.Addr) bool {
	if dst.Is6() {
		return o.QueueErrors6
	}
	return o.QueueErrors
}

// tellsExtensions reports whether it is told where the extensions of messages about these are.
func (o *UDPOptions) tellsExtensions(dst netip.Addr) bool {
	if dst.Is6() {
		return o.TellExtensions6
	}
	return o.TellExtensions
}

// TakeError takes the oldest error about a datagram of the socket's. As on Linux, the error
// that waits (Err) is that of the next message of ICMP then, or none.
func (c *datagramSocket) TakeError() (DatagramError, bool) {
	e, next, ok := c.errors.take()
	switch {
	case next != nil && !next.Local:
		c.failure.Store(&next.Err)
	case ok && !e.Local:
		c.failure.Store(nil)
	}
	return e, ok
}

// keepError keeps an error for TakeError.
func (c *datagramSocket) keepError(e DatagramError) {
	c.queue.mu.Lock()
	limit := c.queue.limit
	c.queue.mu.Unlock()
	c.errors.put(e, limit)
}

// tooLong keeps that a packet to remote was too long for its path, if the program wants to
// know so.
func (c *datagramSocket) tooLong(o *UDPOptions, remote netip.AddrPort, mtu int) {
	if !o.queuesErrors(remote.Addr()) {
		return
	}
	if remote.Addr().Is4() { // of IPv4 Linux tells the port of the peer
		remote = netip.AddrPortFrom(remote.Addr(), c.RemoteAddrPort().Port())
	}
	c.keepError(DatagramError{Err: ErrMessageTooLong, Local: true, Info: uint32(mtu), To: remote})
	c.tell(Error)
}

// fit is ipHeader.fit of a packet to remote, and keeps its error.
func (c *datagramSocket) fit(h *ipHeader, p *path, o *UDPOptions, remote netip.AddrPort, payload int) error {
	err := h.fit(p, o.discovery(h.dst), payload)
	if err == nil && o.Whole6 && h.dst.Is6() && h.length()+payload > p.mtu {
		err = ErrMessageTooLong
	}
	if err != nil && o.Whole6 && o.TellPathMTU && h.dst.Is6() {
		c.pathTold.Store(&PathMTU{remote.Addr(), p.mtu})
	}
	if err != nil {
		c.tooLong(o, remote, p.mtu)
	}
	return err
}
