package stack

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/stack/queue"
	"loam/stack/socket"
	"loam/stack/tcp"
	"loam/wire"
)

// LinkConn is a socket for link-layer frames, like the packet sockets of Linux (packet(7)). It receives a copy of every frame
// that arrives, whatever its destination and before the stack processes it, and of every frame that is sent. It can send
// frames of any type. The copying is in linktap.go.
//
// Such sockets are few. They are published as an immutable list that receivers and shards read.
type LinkConn struct {
	watcher
	readers socket.Waiter
	stack   *Stack
	cooked  bool // the program reads and writes frames without the link header
	queue   queue.Messages[LinkFrame]
	filter  atomic.Pointer[Filter]
	bound   atomic.Pointer[linkBinding]
	sink    atomic.Pointer[func([]byte, *LinkFrame) bool] // function that receives frames: see SetSink

	ignoreOutgoing     atomic.Bool
	received, overflew atomic.Uint32 // numbers of frames since the last TakeStats; received includes overflew

	mu     sync.Mutex // guards closed
	closed bool
}

// linkBinding selects the frames that a socket receives.
type linkBinding struct {
	on   *Interface     // interface of the frames; nil: all interfaces
	kind wire.EtherType // type of the frames; 0: none; LinkAll: every type
}

// Frame types in addition to EtherTypes (linux/if_ether.h).
const (
	LinkAll wire.EtherType = 0x0003 // receive all frames, including those that are sent
	LinkLLC wire.EtherType = 0x0004 // type of an 802.3 frame, which has a length in place of a type
)

// FrameKind classifies the destination of a frame. The numbers are those of packet(7).
type FrameKind uint8

// Values of FrameKind: to whom a frame is addressed.
const (
	FrameToHost FrameKind = iota
	FrameToAll
	FrameToGroup
	FrameToOther // a unicast frame to another station
	FrameOutgoing
)

// LinkFrame describes a frame that was read.
type LinkFrame struct {
	Type      wire.EtherType // type of the frame, after any VLAN tags; LinkLLC if it has none
	Kind      FrameKind
	Interface int      // index of the interface of the frame
	From      wire.MAC // source address; zero if the link has no addresses
	Len       int      // length in bytes, possibly more than was copied to the buffer
	WireLen   int      // length in bytes before the filter truncated the frame
	Header    int      // length of the link header, in bytes
	Partial   bool     // the frame has no checksum yet: the device was to compute it
	at        tcp.Time // arrival time: see ArrivedFrame
}

// ArrivedFrame returns when a frame arrived or was sent, by the current wall clock.
func (s *Stack) ArrivedFrame(d *LinkFrame) time.Time { return time.Now().Add(d.at - s.now()) }

// ListenLink returns a socket that receives frames of one type on all interfaces. With type 0 it receives nothing until Bind
// is called. A cooked socket reads and writes frames without the link header. Errors: ErrClosed.
func (s *Stack) ListenLink(cooked bool, kind wire.EtherType) (*LinkConn, error) {
	c := &LinkConn{stack: s, cooked: cooked}
	c.queue.SetLimit(defaultDatagramBuffer)
	c.Bind(nil, kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	list := append(slices.Clone(s.links()), c)
	s.linkConns.Store(&list)
	return c, nil
}

// links returns the link-layer sockets. The slice must not be changed.
func (s *Stack) links() []*LinkConn {
	if list := s.linkConns.Load(); list != nil {
		return *list
	}
	return nil
}

// Close closes the socket. Errors: ErrClosed if it is already closed.
func (c *LinkConn) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return ErrClosed
	}
	s := c.stack
	s.mu.Lock()
	list := slices.DeleteFunc(slices.Clone(s.links()), func(other *LinkConn) bool { return other == c })
	s.linkConns.Store(&list)
	if len(list) == 0 {
		s.linkConns.Store(nil)
	}
	s.mu.Unlock()
	c.queue.Close()
	c.readers.Ring()
	c.readers.Close()
	c.reportEvents(Readable | Writable | Hangup)
	return nil
}

// Bind selects frames of one type, or LinkAll, on one interface; nil means all interfaces.
func (c *LinkConn) Bind(on *Interface, kind wire.EtherType) { c.bound.Store(&linkBinding{on, kind}) }

// Bound returns the setting of Bind.
func (c *LinkConn) Bound() (on *Interface, kind wire.EtherType) {
	b := c.bound.Load()
	return b.on, b.kind
}

// SetFilter installs f as the filter of frames from now on; nil removes the filter.
func (c *LinkConn) SetFilter(f Filter) {
	if f == nil {
		c.filter.Store(nil)
		return
	}
	c.filter.Store(&f)
}

// SetSink makes f receive frames instead of the receive buffer; nil restores the buffer. f must not retain the frame, and
// reports whether it had room for it. Several goroutines may call f at the same time.
func (c *LinkConn) SetSink(f func(frame []byte, info *LinkFrame) bool) {
	if f == nil {
		c.sink.Store(nil)
		return
	}
	c.sink.Store(&f)
}

// IgnoreOutgoing sets whether the socket ignores frames that this host sends.
func (c *LinkConn) IgnoreOutgoing(on bool) { c.ignoreOutgoing.Store(on) }

// SetReceiveBuffer bounds the memory of unread frames, in bytes.
func (c *LinkConn) SetReceiveBuffer(n int) { c.queue.SetLimit(n) }

// TakeStats returns how many frames matched the socket since the last call of TakeStats,
// and how many of them were dropped for lack of room.
func (c *LinkConn) TakeStats() (frames, dropped uint32) {
	return c.received.Swap(0), c.overflew.Swap(0)
}

// TryRead copies the oldest frame to p and removes it. Bytes that do not fit are lost;
// LinkFrame.Len is the full length. Errors: ErrWouldBlock, ErrClosed.
func (c *LinkConn) TryRead(p []byte) (int, LinkFrame, error) { return c.read(p, c.queue.Take) }

// ReadFrame waits for a frame and returns it as TryRead does. Errors, wrapped in a net.OpError: net.ErrClosed, and
// os.ErrDeadlineExceeded after the deadline of SetReadDeadline.
func (c *LinkConn) ReadFrame(p []byte) (int, LinkFrame, error) {
	var info LinkFrame
	n, err := socket.Await(&c.readers, func() (n int, err error) {
		n, info, err = c.TryRead(p)
		return n, err
	})
	return n, info, opError("read", "packet", nil, nil, err)
}

// SetReadDeadline makes ReadFrame fail after t; the zero time means no deadline. Errors:
// net.ErrClosed, wrapped in a net.OpError.
func (c *LinkConn) SetReadDeadline(t time.Time) error {
	return opError("set", "packet", nil, nil, c.readers.SetDeadline(t))
}

// Peek is TryRead without removing the frame.
func (c *LinkConn) Peek(p []byte) (int, LinkFrame, error) { return c.read(p, c.queue.Peek) }

func (c *LinkConn) read(p []byte, from func([]byte) (int, LinkFrame, bool)) (int, LinkFrame, error) {
	if n, info, ok := from(p); ok {
		return n, info, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, LinkFrame{}, ErrClosed
	}
	return 0, LinkFrame{}, ErrWouldBlock
}

// Waiting returns the number of frames that can be read now, and the length of the first frame in bytes.
func (c *LinkConn) Waiting() (count, first int) { return c.queue.Len() }

// Events returns the conditions that hold now. Writable always holds: a frame that the device has no room for is dropped.
func (c *LinkConn) Events() Events {
	e := Writable
	if n, _ := c.queue.Len(); n > 0 {
		e |= Readable
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		e |= Readable | Hangup
	}
	return e
}

// TryWrite sends a frame on an interface. p includes the link header, unless the socket is cooked; then p is the payload of a
// frame of the given type, and the parameter to is the address of the receiving station. On a link without header, p is the
// whole frame. Errors: ErrClosed, ErrNoInterface if the interface is nil, ErrInvalid for a frame shorter than the header,
// ErrMessageTooLong, ErrNoBuffers if the device has no room.
func (c *LinkConn) TryWrite(p []byte, on *Interface, to wire.MAC, kind wire.EtherType) (int, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return 0, ErrClosed
	case on == nil:
		return 0, ErrNoInterface
	}
	header := on.headerLen()
	body, most := p, on.mtu
	if !c.cooked {
		if len(p) < header {
			return 0, ErrInvalid
		}
		body, most = p[header:], on.mtu+tagLen
	}
	if len(body) > most {
		return 0, ErrMessageTooLong
	}
	f := link.FrameOf(body)
	switch {
	case on.medium != link.Ethernet:
	case c.cooked:
		h := wire.Ethernet{Dst: to, Src: on.mac, Type: kind}
		h.Put(f.Prepend(wire.EthernetLen))
	default:
		copy(f.Prepend(wire.EthernetLen), p)
	}
	return len(p), c.send(on, f)
}

// tagLen is the length of a VLAN tag in bytes. A tagged frame may exceed the MTU by that much.
const tagLen = 4

// send passes a frame to the device of an interface. It takes ownership of the frame.
func (c *LinkConn) send(on *Interface, f *link.Frame) error {
	if s := c.stack; s.linkConns.Load() != nil {
		s.tapOutgoing(&s.tally, on, f, c)
	}
	if !on.ports[0].sendControl(f) {
		c.stack.tally.count(LinkNoRoom)
		return ErrNoBuffers
	}
	c.stack.tally.count(LinkSent)
	return nil
}
