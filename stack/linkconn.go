package stack

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/stack/tcp"
	"loam/wire"
)

// LinkConn is a socket for the frames of links, as Linux's packet sockets are (packet(7)): it
// gets a copy of each frame that arrives, before the stack looks at it and whoever it is for,
// and of each that is sent; and it sends frames of any type. linktap.go has how it gets them.
//
// Such sockets are few, and are published as a list that receivers and shards read.
type LinkConn struct {
	watcher
	stack  *Stack
	cooked bool // frames are without the link's header
	queue  messageQueue[LinkFrame]
	filter atomic.Pointer[Filter]
	bound  atomic.Pointer[linkBinding]
	sink   atomic.Pointer[func([]byte, *LinkFrame) bool] // see SetSink

	ignoreOutgoing     atomic.Bool
	received, overflew atomic.Uint32 // since TakeStats; the former with the latter

	mu     sync.Mutex // guards closed
	closed bool
}

// linkBinding is what a socket hears.
type linkBinding struct {
	on   *Interface     // nil: all
	kind wire.EtherType // 0: nothing; LinkAll
}

// Types of frames besides those of Ethernet (linux/if_ether.h).
const (
	LinkAll wire.EtherType = 0x0003 // to hear all frames, those that are sent too
	LinkLLC wire.EtherType = 0x0004 // of a frame that says its length in the place of a type (802.3)
)

// FrameKind says whom a frame is for, with the numbers of packet(7).
type FrameKind uint8

// Kinds of frames.
const (
	FrameToHost FrameKind = iota
	FrameToAll
	FrameToGroup
	FrameToOther // another station
	FrameOutgoing
)

// LinkFrame says what came with a frame that was read.
type LinkFrame struct {
	Type      wire.EtherType // behind any tags, or LinkLLC
	Kind      FrameKind
	Interface int      // index
	From      wire.MAC // zero where the link has no addresses
	Len       int      // in bytes, which may be more than fitted into the buffer
	WireLen   int      // before the filter cut it
	Header    int      // bytes of the link's header in front
	Partial   bool     // its checksum was left to a device
	at        tcp.Time // see ArrivedFrame
}

// ArrivedFrame is when a frame arrived, or was sent, by the clock as it goes now.
func (s *Stack) ArrivedFrame(d *LinkFrame) time.Time { return time.Now().Add(d.at - s.now()) }

// ListenLink makes a socket that hears frames of a type on all interfaces; of type 0 it hears
// none before Bind. A cooked one reads and writes what is behind the link's header. Errors:
// ErrClosed.
func (s *Stack) ListenLink(cooked bool, kind wire.EtherType) (*LinkConn, error) {
	c := &LinkConn{stack: s, cooked: cooked}
	c.queue.limit = defaultDatagramBuffer
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

// links are the sockets for frames that there are. The list is never changed.
func (s *Stack) links() []*LinkConn {
	if list := s.linkConns.Load(); list != nil {
		return *list
	}
	return nil
}

// Close closes the socket. Errors: ErrClosed if it is closed already.
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
	c.queue.close()
	c.tell(Readable | Writable | Hangup)
	return nil
}

// Bind has the socket hear frames of one type, or LinkAll, on one interface; nil: on all.
func (c *LinkConn) Bind(on *Interface, kind wire.EtherType) { c.bound.Store(&linkBinding{on, kind}) }

// Bound is what Bind has set.
func (c *LinkConn) Bound() (on *Interface, kind wire.EtherType) {
	b := c.bound.Load()
	return b.on, b.kind
}

// SetFilter has f look at all frames that come from now on; nil: nobody.
func (c *LinkConn) SetFilter(f Filter) {
	if f == nil {
		c.filter.Store(nil)
		return
	}
	c.filter.Store(&f)
}

// SetSink has f take frames in the place of the receive buffer; nil: nobody. f keeps nothing of
// the frame, reports whether it had room for it, and is called by several goroutines.
func (c *LinkConn) SetSink(f func(frame []byte, info *LinkFrame) bool) {
	if f == nil {
		c.sink.Store(nil)
		return
	}
	c.sink.Store(&f)
}

// IgnoreOutgoing has the socket not hear what is sent.
func (c *LinkConn) IgnoreOutgoing(on bool) { c.ignoreOutgoing.Store(on) }

// SetReceiveBuffer bounds the memory of frames that have not been read, in bytes.
func (c *LinkConn) SetReceiveBuffer(n int) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	c.queue.limit = n
}

// TakeStats is how many frames the socket was to get since TakeStats was called last, and how
// many of these it had no room for.
func (c *LinkConn) TakeStats() (frames, dropped uint32) {
	return c.received.Swap(0), c.overflew.Swap(0)
}

// TryRead takes the oldest frame; what does not fit into p is lost, and LinkFrame.Len says how
// long it was. Errors: ErrWouldBlock, ErrClosed.
func (c *LinkConn) TryRead(p []byte) (int, LinkFrame, error) { return c.read(p, c.queue.take) }

// Peek is TryRead but leaves the frame there.
func (c *LinkConn) Peek(p []byte) (int, LinkFrame, error) { return c.read(p, c.queue.peek) }

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

// Waiting is how many frames could be read now, and the length of the first.
func (c *LinkConn) Waiting() (count, first int) { return c.queue.len() }

// Events is what holds now. A frame can always be sent, or is lost.
func (c *LinkConn) Events() Events {
	e := Writable
	if n, _ := c.queue.len(); n > 0 {
		e |= Readable
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		e |= Readable | Hangup
	}
	return e
}

// TryWrite sends a frame on an interface: p with its header, or of a cooked socket p to a
// station as a frame of a type. A link without a header takes p alone. Errors: ErrClosed,
// ErrNoInterface where on is nil, ErrInvalid for a frame that is shorter than a header,
// ErrMessageTooLong, ErrNoBuffers where the device has no room.
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
	f := link.NewFrame(len(body))
	copy(f.Bytes(), body)
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

// tagLen is how much longer than an interface's MTU a frame with a VLAN's tag may be.
const tagLen = 4

// send hands a frame to the device. It owns the frame.
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
