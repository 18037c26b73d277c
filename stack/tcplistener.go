package stack

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/stack/port"
	"loam/stack/tcp"
	"loam/wire"
)

// TCPListener takes connections on a local address and port. Every shard knows
// it; a connection is made on the shard of its flow, and handed over when the
// handshake is complete.
//
// Two numbers bound what strangers can make it hold: connections whose
// handshake is incomplete (halfOpen, at most maxHalfOpen) and connections that
// wait for the program (queued, at most backlog). Above the first a SYN is
// answered with a cookie and nothing is kept (RFC 4987 section 3.6); above the
// second a SYN is dropped, and the peer tries again.
//
// The methods here never block: Accept is in net.go.
type TCPListener struct {
	watcher
	binding     *TCPBinding
	options     TCPOptions
	backlog     int
	maxHalfOpen int32
	acceptors   waiter

	halfOpen   atomic.Int32
	lastCookie atomic.Int64 // tcp.Time of the last cookie sent, 0 if none

	mu     sync.Mutex
	queue  []*TCPConn // complete, oldest first
	closed bool
}

// Bounds of a listener's half-open connections; in between, it is the backlog.
const (
	minHalfOpen = 16
	maxHalfOpen = 1024
)

// MaxBacklog is the most that a program gets (net.core.somaxconn).
const MaxBacklog = 4096

// Listen begins to take connections. backlog is bounded to 1..MaxBacklog.
func (b *TCPBinding) Listen(backlog int) (*TCPListener, error) {
	backlog = max(1, min(backlog, MaxBacklog))
	b.mu.Lock()
	l := &TCPListener{binding: b, options: b.options, backlog: backlog}
	b.mu.Unlock()
	l.maxHalfOpen = int32(max(minHalfOpen, min(backlog, maxHalfOpen)))
	if err := b.use(); err != nil {
		return nil, err
	}
	if err := b.stack.ports.listen(b.port); err != nil {
		return nil, err
	}
	known := b.stack.enter(func(sh *shard) {
		for _, at := range keys(b.local, b.options.V6Only) {
			sh.listeners[at] = append(sh.listeners[at], l)
		}
	})
	if !known {
		l.Close()
		return nil, ErrClosed
	}
	return l, nil
}

// LocalAddrPort is where it listens.
func (l *TCPListener) LocalAddrPort() netip.AddrPort { return l.binding.local }

// SetOptions changes the options that connections made from now on inherit.
func (l *TCPListener) SetOptions(f func(*TCPOptions)) {
	l.mu.Lock()
	f(&l.options)
	l.mu.Unlock()
}

// Options returns what connections inherit.
func (l *TCPListener) Options() TCPOptions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.options
}

// TryAccept returns the connection that has waited longest. Errors:
// ErrWouldBlock, ErrClosed.
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
		l.acceptors.ring()
	}
	return c, nil
}

// Events is what holds now.
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

// Close stops taking connections. Those that the program has not accepted are
// reset.
func (l *TCPListener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return opError("close", "tcp", nil, l.Addr(), ErrClosed)
	}
	l.closed = true
	queue := l.queue
	l.queue = nil
	l.mu.Unlock()
	l.binding.stack.onEach(func(sh *shard) {
		sh.removeListener(l)
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
	l.acceptors.ring()
	l.acceptors.close()
	l.tell(Readable | Hangup)
	return l.binding.Close()
}

func (sh *shard) removeListener(l *TCPListener) {
	for _, at := range keys(l.binding.local, l.binding.options.V6Only) {
		if list := removeOne(sh.listeners[at], l); len(list) == 0 {
			delete(sh.listeners, at)
		} else {
			sh.listeners[at] = list
		}
	}
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

// keys are where the tables of sockets have one that is bound to an address: as it is
// on the wire, and for all addresses of IPv6, unless it is for these alone, all of IPv4
// as well (RFC 3493 section 5.3).
func keys(local netip.AddrPort, v6Only bool) []netip.AddrPort {
	at := []netip.AddrPort{bare(local)}
	if local.Addr().Is6() && local.Addr().IsUnspecified() && !v6Only {
		at = append(at, netip.AddrPortFrom(netip.IPv4Unspecified(), local.Port()))
	}
	return at
}

// listener finds who listens for a connection: on the address itself, or on
// all. Several that share a port (SO_REUSEPORT) divide the flows.
func (sh *shard) listener(ifc *Interface, id tcp.ID) *TCPListener {
	list := heard(sh.listeners[bare(id.Local)], ifc)
	if list == nil {
		list = heard(sh.listeners[netip.AddrPortFrom(anyAddr(id.Local.Addr()), id.Local.Port())], ifc)
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list[shardOf(id.Remote.Addr(), id.Local.Addr(), id.Remote.Port(), id.Local.Port(), ^sh.stack.seed, len(list))]
}

func anyAddr(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// input takes a segment without a connection (RFC 9293 section 3.10.7.2). It
// returns false for what is to be reset.
func (l *TCPListener) input(sh *shard, id tcp.ID, p *packet, seg *tcp.Segment) bool {
	switch {
	case seg.Flags.Has(wire.RST):
		return true
	case seg.Flags.Has(wire.ACK):
		return !seg.Flags.Has(wire.SYN) && l.inputCookie(sh, id, seg)
	case !seg.Flags.Has(wire.SYN):
		return true // nothing to do with us: no reset either
	case seg.Flags.Has(wire.FIN): // scanners' and filters' trick; Linux takes no such SYN either
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

// newConn makes the shell of a connection on the listener's port; nil if there is
// such a connection already, which can only be one that is just ending.
func (l *TCPListener) newConn(sh *shard, id tcp.ID) *TCPConn {
	flow, err := sh.stack.ports.connect(id.Local, id.Remote, l.binding.port, port.Options{})
	if err != nil {
		return nil
	}
	c := sh.newConn(id, l.Options())
	c.flow = flow
	return c
}

// open begins a connection.
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
}

const cookiePeriod = time.Minute

func (l *TCPListener) sendCookie(sh *shard, id tcp.ID, syn *tcp.Segment) {
	var h wire.TCP
	o := l.Options()
	sh.stack.key.CookieSYNACK(sh.now, uint32(sh.now/cookiePeriod), &sh.tcpConfig, id, o.mss(sh.mss(o.Device, id)), syn, &h)
	l.lastCookie.Store(int64(sh.now))
	sh.tally.count(TCPCookiesSent)
	sh.sendStateless(o.Device, id, &h)
}

// inputCookie takes an acknowledgement that may answer a cookie. It returns
// false for one that does not.
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
		sh.stack.ports.close(c.flow)
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

// offer gives a connection whose handshake is complete to the program, now or, if the
// listener wants that, when it has brought data (TCP_DEFER_ACCEPT).
func (c *TCPConn) offer(sh *shard) {
	wait := c.Options().DeferAccept
	if c.listener == nil || wait <= 0 {
		c.handOver()
		return
	}
	c.offerBy = sh.now + wait
}

// isWithheld reports whether the program is to get the connection later.
func (c *TCPConn) isWithheld() bool { return c.listener != nil && c.offerBy != 0 }

// offerLate gives the program a connection that was withheld, if something has come of it,
// or its time is over.
func (c *TCPConn) offerLate(sh *shard) {
	if c.isWithheld() && (c.hasInput() || c.machine.ReadClosed() || sh.now >= c.offerBy) {
		c.handOver()
	}
}

// handOver gives a connection whose handshake is complete to the program.
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
	l.acceptors.ring()
	l.tell(Readable)
}

// leaveListener forgets a connection that ended before it was handed over: no
// program will close it.
func (c *TCPConn) leaveListener() {
	if c.listener != nil {
		c.listener.halfOpen.Add(-1)
		c.listener = nil
		c.status.Or(statusClosed)
	}
}

func tcpID(p *packet, seg *tcp.Segment) tcp.ID {
	id := tcp.ID{Local: netip.AddrPortFrom(p.dst, seg.DstPort), Remote: netip.AddrPortFrom(p.src, seg.SrcPort)}
	if p.dst.Is6() {
		id.Local, id.Remote = p.ifc.scopedPort(id.Local), p.ifc.scopedPort(id.Remote)
	}
	return id
}
