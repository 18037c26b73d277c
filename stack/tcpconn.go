package stack

import (
	"io"
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/link"
	"loam/stack/port"
	"loam/stack/ring"
	"loam/stack/tcp"
	"loam/stack/timer"
	"loam/wire"
)

// TCPConn is a TCP connection as a program holds it. Two sides meet in it: the
// shard, which owns the machine, and the program's goroutines. Between them are
// two byte rings (received, toSend), a few atomic words, and for each direction
// a waiter.
//
// The program never touches the machine: it leaves bytes in a ring, or a bit in
// wish, and has the shard look (touch). The shard never waits for the program:
// it changes status and rings.
//
// The methods here never block: see net.go for Read, Write and deadlines.
type TCPConn struct {
	watcher
	shard         *shard
	local, remote netip.AddrPort
	received      ring.Receive
	toSend        ring.Send
	readers       waiter
	writers       waiter
	readMu        sync.Mutex // one reader at a time in received
	writeMu       sync.Mutex // one writer at a time in toSend

	status  atomic.Uint32 // statusBits, set by the shard and by the program
	wish    atomic.Uint32 // wishBits, set by the program, taken by the shard
	failure atomic.Pointer[error]
	options optionBox
	notify  atomic.Uint64 // reading beyond this offset may open the window: tell the shard

	// What follows belongs to the shard.
	machine  *tcp.Conn
	flow     *port.Flow   // nil: a forwarder's, whose ports are not ours
	listener *TCPListener // while the connection has not been handed to a program
	path     path
	timer    timer.Entry
	ipID     uint16
	ttl, tos uint8
	dirty    bool // on shard.dirty
	stalled  bool // on txLink.stalled
	removed  bool
	sawEnd   uint64 // toSend.End when the machine last heard of it
}

// Bits of TCPConn.status. They are only ever set.
const (
	statusConnected  uint32 = 1 << iota // the handshake is complete
	statusReadClosed                    // the peer has ended its stream and all of it is in the ring
	statusEnded                         // the machine has ended; failure says why
	statusShutRead                      // the program reads no more
	statusShutWrite                     // the program writes no more
	statusClosed                        // the program has closed the socket
)

// Bits of TCPConn.wish: what the program wants of the shard.
const (
	wishServe      uint32 = 1 << iota // on the inbox already
	wishCloseWrite                    //
	wishClose                         //
	wishAbort                         //
	wishOptions                       // options have changed
	wishRead                          // a read found nothing: tell when there is something
	wishWrite                         // a write found no room: likewise
)

// Sizes of the send ring in bytes: what a program may have written and not yet
// acknowledged. It grows with the congestion window.
const (
	minSendBuffer = 256 << 10
	maxSendBuffer = 4 << 20
)

// LocalAddrPort and RemoteAddrPort name the ends.
func (c *TCPConn) LocalAddrPort() netip.AddrPort { return c.local }

// RemoteAddrPort is the peer's address.
func (c *TCPConn) RemoteAddrPort() netip.AddrPort { return c.remote }

// ask leaves a wish and has the shard look, unless it is going to anyway.
func (c *TCPConn) ask(wish uint32) {
	if c.wish.Or(wish|wishServe)&wishServe == 0 {
		c.shard.touch(c)
	}
}

// TryRead reads what is there. Errors: ErrWouldBlock; io.EOF at the end of the
// stream; why the connection ended, once everything that came before has been
// read; ErrClosed.
func (c *TCPConn) TryRead(p []byte) (int, error) {
	status := c.status.Load() // before the ring: the bits say that it is complete
	if status&statusClosed != 0 {
		return 0, ErrClosed
	}
	if status&statusShutRead != 0 {
		return 0, io.EOF
	}
	c.readMu.Lock()
	n := c.received.Read(p)
	c.readMu.Unlock()
	if n > 0 || len(p) == 0 {
		if c.received.Consumed() >= c.notify.Load() {
			c.ask(0)
		}
		return n, nil
	}
	switch {
	case status&statusReadClosed != 0:
		return 0, io.EOF
	case status&statusEnded != 0:
		if err := c.takeFailure(); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	if c.wish.Or(wishRead)&wishRead == 0 {
		return c.readAgain(p)
	}
	return 0, ErrWouldBlock
}

// readAgain closes the gap between finding nothing and saying so.
func (c *TCPConn) readAgain(p []byte) (int, error) {
	if c.received.Readable() == 0 && c.status.Load()&(statusReadClosed|statusEnded) == 0 {
		return 0, ErrWouldBlock
	}
	return c.TryRead(p)
}

// Peek copies what could be read, skipping the first skip bytes, and leaves it
// there. Errors are TryRead's.
func (c *TCPConn) Peek(p []byte, skip int) (int, error) {
	status := c.status.Load()
	c.readMu.Lock()
	n := c.received.Peek(p, skip)
	c.readMu.Unlock()
	if n > 0 {
		return n, nil
	}
	if status&(statusReadClosed|statusShutRead) != 0 {
		return 0, io.EOF
	}
	return c.TryRead(p[:0:0])
}

// Buffered is how many bytes could be read now.
func (c *TCPConn) Buffered() int { return c.received.Readable() }

// Unsent is how many bytes have been written and not been acknowledged.
func (c *TCPConn) Unsent() int { return c.toSend.Len() }

// TryWrite takes as much of p as there is room for. Errors: ErrWouldBlock when
// that is nothing; ErrPipe after CloseWrite and after the connection has ended
// (the first time, why it ended); ErrClosed.
func (c *TCPConn) TryWrite(p []byte) (int, error) {
	status := c.status.Load()
	switch {
	case status&statusClosed != 0:
		return 0, ErrClosed
	case status&statusEnded != 0:
		if err := c.takeFailure(); err != nil {
			return 0, err
		}
		return 0, ErrPipe
	case status&statusShutWrite != 0:
		return 0, ErrPipe
	case status&statusConnected == 0:
		c.wish.Or(wishWrite)
		if c.status.Load()&(statusConnected|statusEnded) == 0 {
			return 0, ErrWouldBlock
		}
	}
	c.writeMu.Lock()
	n := c.toSend.Write(p)
	if n < len(p) && c.wish.Or(wishWrite)&wishWrite == 0 {
		n += c.toSend.Write(p[n:]) // room may have come before the shard could see the wish
	}
	c.writeMu.Unlock()
	if n > 0 {
		c.ask(0)
		return n, nil
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, ErrWouldBlock
}

// takeFailure is why the connection ended, the first time it is asked.
func (c *TCPConn) takeFailure() error {
	if p := c.failure.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// Err returns and clears the error that is waiting (SO_ERROR).
func (c *TCPConn) Err() error {
	if c.status.Load()&statusEnded == 0 {
		return nil
	}
	return c.takeFailure()
}

// Connected reports whether the handshake is complete.
func (c *TCPConn) Connected() bool { return c.status.Load()&statusConnected != 0 }

// Events is what holds now.
func (c *TCPConn) Events() Events {
	status := c.status.Load()
	var e Events
	if status&(statusReadClosed|statusShutRead|statusEnded) != 0 {
		e |= Readable | ReadHangup
	} else if c.received.Readable() > 0 {
		e |= Readable
	} else {
		c.wish.Or(wishRead)
	}
	if status&statusEnded != 0 || status&statusConnected != 0 && c.toSend.Room() > 0 {
		e |= Writable
	} else {
		c.wish.Or(wishWrite)
	}
	if status&statusEnded != 0 || status&statusReadClosed != 0 && status&statusShutWrite != 0 {
		e |= Hangup
	}
	if c.failure.Load() != nil {
		e |= Error
	}
	return e
}

// CloseRead discards what arrives from now on; reads return io.EOF.
func (c *TCPConn) CloseRead() error {
	if old := c.status.Or(statusShutRead); old&statusClosed != 0 {
		return ErrClosed
	}
	c.readMu.Lock()
	c.received.Discard(c.received.Readable())
	c.readMu.Unlock()
	c.wake()
	c.ask(0)
	return nil
}

// CloseWrite ends the stream to the peer behind what has been written.
func (c *TCPConn) CloseWrite() error {
	old := c.status.Or(statusShutWrite)
	switch {
	case old&statusClosed != 0:
		return ErrClosed
	case old&statusConnected == 0:
		return ErrNotConnected
	}
	c.ask(wishCloseWrite)
	c.writers.ring()
	return nil
}

// Close lets go of the connection. What has been written is still sent, in the
// background, unless SetLinger says otherwise.
func (c *TCPConn) Close() error {
	if old := c.status.Or(statusClosed | statusShutRead | statusShutWrite); old&statusClosed != 0 {
		return ErrClosed
	}
	if c.options.abortive() {
		c.ask(wishAbort)
	} else {
		c.ask(wishClose)
	}
	c.wake()
	return nil
}

// Abort ends the connection with a reset.
func (c *TCPConn) Abort() error {
	if old := c.status.Or(statusClosed | statusShutRead | statusShutWrite); old&statusClosed != 0 {
		return ErrClosed
	}
	c.ask(wishAbort)
	c.wake()
	return nil
}

// wake has everybody who waits look again.
func (c *TCPConn) wake() {
	c.readers.ring()
	c.writers.ring()
	c.tell(Readable | Writable)
}

// Info describes the connection; the zero Info when it has gone.
func (c *TCPConn) Info() tcp.Info {
	var info tcp.Info
	c.shard.request(func(sh *shard) { info = c.machine.Info(sh.now) })
	return info
}

// serve does what the program asked for. It runs on the shard.
func (c *TCPConn) serve(sh *shard) {
	wish := c.wish.And(^(wishServe | wishCloseWrite | wishClose | wishAbort | wishOptions))
	if c.removed {
		return
	}
	m := c.machine
	if wish&wishOptions != 0 {
		c.options.apply(sh.now, c)
	}
	c.hearWritten(sh)
	m.Consumed(sh.now)
	switch {
	case wish&wishAbort != 0:
		m.Abort(sh.now)
	case wish&wishClose != 0:
		m.Close(sh.now)
	case wish&wishCloseWrite != 0:
		m.CloseWrite(sh.now)
	}
	sh.mark(c)
}

func (c *TCPConn) hearWritten(sh *shard) {
	if end := c.toSend.End(); end != c.sawEnd {
		c.sawEnd = end
		c.machine.Written(sh.now)
	}
}

// quantum is how many frames a connection may send before others get a turn.
const quantum = 32

// output sends what the machine has to send, as far as there is room, and then
// settles what has changed. It runs on the shard, once a turn for each
// connection that was touched.
func (c *TCPConn) output(sh *shard) {
	if c.removed {
		return
	}
	if c.path.tables != sh.tables {
		c.findPath(sh)
	}
	if c.path.ifc != nil {
		l := sh.link(c.path.ifc)
		for n := 0; ; n++ {
			if !l.room() {
				c.stall(l)
				break
			}
			if n == quantum {
				if c.machine.Pending() {
					sh.mark(c)
				}
				break
			}
			var out tcp.Out
			if !c.machine.Poll(sh.now, c.maxPayload(), &out) {
				break
			}
			c.send(sh, l, &out)
		}
	}
	c.settle(sh)
}

// stall leaves the connection to be taken up again when there is room.
func (c *TCPConn) stall(l *txLink) {
	if !c.stalled && c.machine.Pending() {
		c.stalled = true
		l.stalled = append(l.stalled, c)
	}
}

// findPath looks the route up again after the tables have changed. Without a
// route nothing is sent and the machine's timers run.
func (c *TCPConn) findPath(sh *shard) {
	p, err := sh.tables.route(c.local.Addr(), c.remote.Addr())
	if err != nil {
		sh.tally.count(IPNoRoute)
		c.path = path{tables: sh.tables}
		return
	}
	c.path = p
}

// maxPayload is how much one frame may carry: with segmentation offload, as
// much as an IP packet holds.
func (c *TCPConn) maxPayload() int {
	if c.path.ifc.offloads.Has(link.OffloadTSO4) {
		return wire.MaxIPv4 - wire.IPv4MinLen - wire.TCPMaxLen
	}
	return 0 // one segment
}

// send makes a frame of a segment.
func (c *TCPConn) send(sh *shard, l *txLink, out *tcp.Out) {
	f := link.NewFrame(out.Len)
	if out.Len > 0 {
		c.toSend.ReadAt(f.Bytes(), out.Off)
	}
	headerLen := out.TCP.Len()
	out.TCP.Put(f.Prepend(headerLen))
	sh.tally.count(TCPSent)
	finishTCP(f, l.ifc, c.local.Addr(), c.remote.Addr())
	segments := uint16(1)
	if out.Len > out.MSS && out.MSS > 0 {
		f.GSO, f.GSOSize, f.HeaderLen = link.GSOTCP4, uint16(out.MSS), uint16(headerLen)
		f.ECN = out.Flags.Has(wire.CWR)
		segments = uint16((out.Len + out.MSS - 1) / out.MSS)
	}
	h := wire.IPv4{ID: c.ipID, DontFragment: true, TTL: c.ttl, TOS: c.tos, Protocol: wire.ProtoTCP, Src: c.local.Addr(), Dst: c.remote.Addr()}
	if out.ECT {
		h.TOS |= 2
	}
	c.ipID += segments
	putIPv4(f, &h)
	sh.tally.count(IPSent)
	l.transmit(c.path.nextHop, f)
}

// finishTCP fills in the checksum of a segment, or leaves it to the device.
func finishTCP(f *link.Frame, ifc *Interface, src, dst netip.Addr) {
	b := f.Bytes()
	if ifc.offloads.Has(link.OffloadChecksum) {
		f.NeedsChecksum, f.CsumStart, f.CsumOffset = true, 0, 16
		sum := wire.PseudoSum(wire.ProtoTCP, src, dst, len(b))
		b[16], b[17] = byte(sum>>8), byte(sum)
		return
	}
	wire.PutTCPChecksum(b, src, dst)
}

// settle publishes what the machine has come to: to the program, to the
// listener, to the timer wheel.
func (c *TCPConn) settle(sh *shard) {
	m := c.machine
	old := c.status.Load()
	status := old
	if s := m.State(); s != tcp.SynSent && s != tcp.SynReceived && s != tcp.Closed {
		status |= statusConnected
	}
	if m.ReadClosed() {
		status |= statusReadClosed
	}
	if m.Done() {
		status |= statusEnded
	}
	if status != old {
		c.change(sh, old, status)
	}
	c.wakeProgram()
	if m.Done() {
		sh.remove(c)
		return
	}
	c.notify.Store(c.received.Consumed() + uint64(m.Notice()))
	sh.wheel.Schedule(&c.timer, m.Deadline())
}

// change publishes new status bits.
func (c *TCPConn) change(sh *shard, old, status uint32) {
	began := status &^ old
	if began&statusEnded != 0 {
		if err := machineError(c.machine.Err()); err != nil && old&statusClosed == 0 {
			c.failure.Store(&err)
		}
		sh.countEnd(c)
	}
	c.status.Or(began)
	if began&statusConnected != 0 {
		sh.tally.count(TCPEstablished)
		c.handOver()
	}
	var e Events
	if began&(statusReadClosed|statusEnded) != 0 {
		e |= Readable | ReadHangup
		c.readers.ring()
	}
	if began&(statusConnected|statusEnded) != 0 {
		e |= Writable
		c.writers.ring()
		c.readers.ring()
	}
	if began&statusEnded != 0 {
		e |= Hangup
		if c.failure.Load() != nil {
			e |= Error
		}
	}
	c.tell(e)
}

// wakeProgram tells goroutines that found nothing to read, or no room to write,
// that there is some now. Room counts from a quarter of the ring, so that a
// writer is not woken for each segment that is acknowledged.
func (c *TCPConn) wakeProgram() {
	wish := c.wish.Load()
	if wish&wishRead != 0 && c.received.Readable() > 0 {
		c.wish.And(^wishRead)
		c.readers.ring()
		c.tell(Readable)
	}
	if wish&wishWrite != 0 && c.status.Load()&statusConnected != 0 {
		c.growSendBuffer()
		if c.toSend.Room() >= c.toSend.Limit()/4 {
			c.wish.And(^wishWrite)
			c.writers.ring()
			c.tell(Writable)
		}
	}
}

// growSendBuffer lets the program have twice the congestion window in the ring.
func (c *TCPConn) growSendBuffer() {
	if c.options.fixedSendBuffer() {
		return
	}
	if want := 2 * c.machine.CongestionWindow(); want > c.toSend.Limit() {
		c.toSend.SetLimit(min(want, maxSendBuffer))
	}
}

// machineError translates why a machine ended.
func machineError(err error) error {
	switch err {
	case nil:
		return nil
	case tcp.ErrReset:
		return ErrReset
	case tcp.ErrRefused:
		return ErrRefused
	case tcp.ErrTimeout:
		return ErrTimeout
	case tcp.ErrUnreachable:
		return ErrHostUnreachable
	default:
		return ErrAborted
	}
}
