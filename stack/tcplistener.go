package stack

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/stack/demux"
	"loam/stack/fastopen"
	"loam/stack/port"
	"loam/stack/socket"
	"loam/stack/tcp"
	"loam/wire"
)

// TCPListener accepts connections on a local address and port. It is registered with every shard. A connection is created by
// the shard of its flow and handed over to the program when the handshake is complete.
//
// Two limits bound the state that remote hosts can create: connections with an incomplete handshake (halfOpen, at most
// maxHalfOpen), and connections waiting for Accept (queued, at most backlog). Above the first limit a SYN is answered with a
// cookie and no state is kept (RFC 4987 section 3.6). Above the second limit a SYN is dropped, and the peer retransmits it.
//
// The methods in tcplistener.go never block. Accept is in net.go.
type TCPListener struct {
	watcher
	binding     *TCPBinding
	place       demux.Place
	options     TCPOptions
	backlog     int
	maxHalfOpen int32
	acceptors   socket.Waiter

	fast       fastopen.Queue
	fastKeys   *fastopen.Keys // guarded by mu
	halfOpen   atomic.Int32
	lastCookie atomic.Int64 // tcp.Time of the last cookie sent, 0 if none

	mu     sync.Mutex
	queue  []*TCPConn // established connections that Accept has not returned, oldest first
	closed bool
}

// Waiting returns the number of connections that Accept has not returned, and the backlog.
func (l *TCPListener) Waiting() (n, backlog int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.backlog
}

// Bounds of TCPListener.maxHalfOpen. Between them it equals the backlog.
const (
	minHalfOpen = 16
	maxHalfOpen = 1024
)

// MaxBacklog is the largest backlog, in connections. defaultBacklog is the backlog of Stack.Listen.
const MaxBacklog, defaultBacklog = 1<<16 - 1, 4096

// Listen starts to accept connections. backlog is clamped to 1..MaxBacklog. Errors:
// ErrInvalid if the binding is already used, ErrInUse, ErrClosed.
func (b *TCPBinding) Listen(backlog int) (*TCPListener, error) {
	backlog = max(1, min(backlog, MaxBacklog))
	b.mu.Lock()
	l := &TCPListener{binding: b, options: b.options, backlog: backlog}
	l.place = demux.Place{Local: b.local, Six: b.six, V6Only: b.options.V6Only, ReusePort: b.options.ReusePort}
	b.mu.Unlock()
	l.maxHalfOpen = int32(max(minHalfOpen, min(backlog, maxHalfOpen)))
	if err := b.use(); err != nil {
		return nil, err
	}
	if err := b.stack.ports.Listen(b.port); err != nil {
		return nil, err
	}
	known := b.stack.enter(func(sh *shard) { sh.listeners.Add(l, l.place) })
	if !known {
		l.Close()
		return nil, ErrClosed
	}
	return l, nil
}

// LocalAddrPort returns the local address and port of the listener.
func (l *TCPListener) LocalAddrPort() netip.AddrPort { return l.binding.local }

// SetOptions changes the options that connections created from now on inherit.
func (l *TCPListener) SetOptions(f func(*TCPOptions)) {
	l.mu.Lock()
	f(&l.options)
	l.mu.Unlock()
}

// device returns the interface that the listener is bound to, or nil.
func (l *TCPListener) device() *Interface {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.options.Device
}

// Options returns the options that connections inherit.
func (l *TCPListener) Options() TCPOptions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.options
}

// TryAccept returns the connection that has waited longest. Errors: ErrWouldBlock, ErrClosed.
func (l *TCPListener) TryAccept() (*TCPConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, ErrClosed
	case len(l.queue) == 0:
		return nil, ErrWouldBlock
	}
	c := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	if len(l.queue) == 0 {
		l.queue = nil
	} else {
		l.acceptors.Ring()
	}
	return c, nil
}

// Events returns the conditions that hold now.
func (l *TCPListener) Events() Events {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return Readable | Hangup
	case len(l.queue) > 0:
		return Readable
	}
	return 0
}

// Close stops accepting connections. Connections not yet accepted are reset.
func (l *TCPListener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return opError("close", "tcp", nil, l.Addr(), ErrClosed)
	}
	queue := l.queue
	l.closed, l.queue = true, nil
	l.mu.Unlock()
	l.binding.stack.onEach(func(sh *shard) {
		sh.listeners.Remove(l, l.place)
		for _, c := range sh.conns {
			if c.listener == l {
				c.machine.Abort(sh.now)
				sh.mark(c)
			}
		}
	})
	for _, c := range queue {
		c.Abort()
	}
	l.acceptors.Ring()
	l.acceptors.Close()
	l.reportEvents(Readable | Hangup)
	return l.binding.Close()
}

// removeOne returns a copy of list without x.
func removeOne[T comparable](list []T, x T) []T {
	var rest []T
	for _, y := range list {
		if y != x {
			rest = append(rest, y)
		}
	}
	return rest
}

// Fit implements demux.Socket.
func (l *TCPListener) Fit(_ netip.AddrPort, on int) demux.Fit {
	switch l.device().number() {
	case 0:
		return demux.Fits
	case on:
		return demux.Fits | demux.Bound
	}
	return 0
}

// anyAddr returns the unspecified address of the same IP version.
func anyAddr(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// input processes a segment that belongs to no connection (RFC 9293 section 3.10.7.2). It
// returns false if the segment must be answered with a reset.
func (l *TCPListener) input(sh *shard, id tcp.ID, p *packet, seg *tcp.Segment) bool {
	switch {
	case seg.Flags.Has(wire.RST):
		return true
	case seg.Flags.Has(wire.ACK):
		return !seg.Flags.Has(wire.SYN) && l.inputCookie(sh, id, seg)
	case !seg.Flags.Has(wire.SYN):
		return true // the segment is no connection attempt, and is dropped without a reset
	case seg.Flags.Has(wire.FIN): // only port scanners send SYN with FIN; Linux drops it, too
		sh.tally.count(TCPMalformed)
		return true
	}
	l.mu.Lock()
	queued, closed := len(l.queue), l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return false
	case queued >= l.backlog:
		sh.tally.count(TCPBacklogFull)
	case l.halfOpen.Load() >= l.maxHalfOpen:
		l.sendCookie(sh, id, seg)
	default:
		l.open(sh, id, seg)
	}
	return true
}

// newConn creates a connection on the listener's port, without its TCP state machine. It returns nil if a connection
// with the same ID exists, which can only be one that is about to end.
func (l *TCPListener) newConn(sh *shard, id tcp.ID) *TCPConn {
	flow, err := sh.stack.ports.Connect(id.Local, id.Remote, l.binding.port, port.Options{})
	if err != nil {
		return nil
	}
	c := sh.newConn(id, l.Options())
	c.flow = flow
	return c
}

// open creates a half-open connection for a SYN.
func (l *TCPListener) open(sh *shard, id tcp.ID, syn *tcp.Segment) {
	c := l.newConn(sh, id)
	if c == nil {
		return
	}
	key := sh.stack.key
	c.machine = tcp.Accept(sh.now, &sh.tcpConfig, id, key.ISN(sh.now, id), key.TimestampOffset(id), c.options.o.mss(sh.mss(c.options.o.Device, id)), syn, &c.toSend, (*arriving)(c))
	c.listener = l
	l.halfOpen.Add(1)
	sh.tally.count(TCPPassiveOpens)
	sh.add(c)
	l.openFast(sh, id, c, syn)
}

// cookiePeriod is the unit of time in SYN cookies. A cookie is accepted for at most two periods.
const cookiePeriod = time.Minute

// sendCookie answers a SYN with a cookie and keeps no state.
func (l *TCPListener) sendCookie(sh *shard, id tcp.ID, syn *tcp.Segment) {
	if !sh.allowCookie(id.Remote.Addr()) {
		sh.tally.count(TCPCookiesLimited)
		return
	}
	var h wire.TCP
	o := l.Options()
	sh.stack.key.CookieSYNACK(sh.now, uint32(sh.now/cookiePeriod), &sh.tcpConfig, id, o.mss(sh.mss(o.Device, id)), syn, &h)
	l.lastCookie.Store(int64(sh.now))
	sh.strays.AddCookie(id.Local, id.Remote)
	sh.tally.count(TCPCookiesSent)
	sh.sendStateless(o.Device, id, &h)
}

// inputCookie processes an acknowledgment that may carry a cookie. It returns false if it does not.
func (l *TCPListener) inputCookie(sh *shard, id tcp.ID, ack *tcp.Segment) bool {
	last := tcp.Time(l.lastCookie.Load())
	if last == 0 || sh.now-last > 2*cookiePeriod {
		return false
	}
	l.mu.Lock()
	full := len(l.queue) >= l.backlog
	l.mu.Unlock()
	if full {
		sh.tally.count(TCPBacklogFull)
		return true
	}
	c := l.newConn(sh, id)
	if c == nil {
		return false
	}
	c.machine = sh.stack.key.CookieAccept(sh.now, uint32(sh.now/cookiePeriod), &sh.tcpConfig, id, c.options.o.mss(sh.mss(c.options.o.Device, id)), ack, &c.toSend, (*arriving)(c))
	if c.machine == nil {
		sh.stack.ports.Close(c.flow)
		sh.tally.count(TCPCookiesBad)
		return false
	}
	c.listener = l
	l.halfOpen.Add(1)
	sh.tally.count(TCPPassiveOpens)
	sh.add(c)
	c.machine.Receive(sh.now, ack)
	return true
}

// offer hands an established connection to the program, or withholds it until data has
// arrived if the listener demands that (TCP_DEFER_ACCEPT).
func (c *TCPConn) offer(sh *shard) {
	wait := c.Options().DeferAccept
	if c.listener == nil || wait <= 0 {
		c.handOver()
		return
	}
	c.offerBy = sh.now + wait
}

// isWithheld reports whether the connection is withheld from the program.
func (c *TCPConn) isWithheld() bool { return c.listener != nil && c.offerBy != 0 }

// offerLate hands over a withheld connection once data or the end of the stream has arrived, or its time has expired.
func (c *TCPConn) offerLate(sh *shard) {
	if c.isWithheld() && (c.hasInput() || c.machine.ReadClosed() || sh.now >= c.offerBy) {
		c.handOver()
	}
}

// handOver adds an established connection to the accept queue.
func (c *TCPConn) handOver() {
	l := c.listener
	if l == nil {
		return
	}
	c.listener = nil
	l.halfOpen.Add(-1)
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.queue = append(l.queue, c)
	}
	l.mu.Unlock()
	if closed {
		c.Abort()
		return
	}
	l.acceptors.Ring()
	l.reportEvents(Readable)
}

// leaveListener releases a connection that ended before it was handed over. No program will close it.
func (c *TCPConn) leaveListener() {
	if c.listener != nil {
		c.listener.halfOpen.Add(-1)
		c.listener = nil
		c.status.Or(statusClosed)
	}
}

// tcpID returns the ID of a segment's connection. Link-local addresses get the zone of the interface.
func tcpID(p *packet, seg *tcp.Segment) tcp.ID {
	id := tcp.ID{Local: netip.AddrPortFrom(p.dst, seg.DstPort), Remote: netip.AddrPortFrom(p.src, seg.SrcPort)}
	if p.dst.Is6() {
		id.Local, id.Remote = p.ifc.scopedPort(id.Local), p.ifc.scopedPort(id.Remote)
	}
	return id
}
