package stack

import (
	"io"
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/internal/list"
	"loam/stack/port"
	"loam/stack/ring"
	"loam/stack/tcp"
	"loam/stack/timer"
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
// The methods here are the program's and never block: see net.go for Read, Write
// and deadlines. What the shard does is in tcpserve.go.
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
	turn          sync.Mutex // one Write at a time, until it has written all

	unsentLow atomic.Uint32 // TCPOptions.UnsentLow, at least 0
	status    atomic.Uint32 // statusBits, set by the shard and by the program
	wish      atomic.Uint32 // wishBits, set by the program, taken by the shard
	failure   atomic.Pointer[error]
	soft      atomic.Pointer[error] // an error that the connection may survive: see TCPOptions.SoftErrors
	options   optionBox
	stamps    stamps
	urgent    atomic.Uint64 // where the urgent byte is: see tcpurgent.go
	notify    atomic.Uint64 // reading beyond this offset may open the window: tell the shard

	// What follows belongs to the shard.
	machine  *tcp.Conn
	flow     *port.Flow   // nil: a forwarder's, whose ports are not ours
	listener *TCPListener // while the connection has not been handed to a program
	offerBy  tcp.Time     // when it is, if it brings no data before; 0: at once
	path     path
	device   *Interface // TCPOptions.Device
	stamped  bool       // TCPOptions.Stamps
	timer    timer.Entry
	orphan   list.Node[TCPConn] // on shard.orphans
	ipID     uint16
	ttl, tos uint8  // of the program; ttl 0: pathHops
	pathHops uint8  // see path.hopLimit
	label    uint32 // IPv6: flow label
	narrow   bool   // routers may fragment: see ip.PathMTU
	dirty    bool   // on shard.dirty
	stalled  bool   // on txLink.stalled
	removed  bool
	pathSeen uint32 // generation of the stack's paths that the path is from
	sawEnd   uint64 // toSend.End when the machine last heard of it

	urgentTo   atomic.Uint64 // with wishUrgent: what was written in front of it is urgent
	sawUrgent  uint64        // end of the urgent data that was last published
	toldUrgent bool          // and that it has come
	sendLimit  int           // of toSend, but for unsentLow
	fixedSend  bool          // it does not grow
	toldTo     uint64        // with wishEach: how much had come when that was told last
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
	wishUrgent                        // there is urgent data, to urgentTo
	wishDrained                       // somebody waits until all is acknowledged: likewise
	wishMore                          // more is to follow what was written; it stays until that is written
	wishEach                          // tell of each arrival, read or not what came before; it stays
)

// LocalAddrPort and RemoteAddrPort name the ends.
func (c *TCPConn) LocalAddrPort() netip.AddrPort { return c.local }

// RemoteAddrPort is the peer's address.
func (c *TCPConn) RemoteAddrPort() netip.AddrPort { return c.remote }

// ask leaves a wish and has the shard look, unless it is going to anyway.
func (c *TCPConn) ask(wish uint32) {
	if c.wish.Or(wish|wishServe)&wishServe == 0 && !c.shard.touch(c) {
		c.forget() // there is no shard any more to do it
	}
}

// askNow is ask that has the shard look on the calling goroutine, if it is at rest.
func (c *TCPConn) askNow(wish uint32) {
	if c.wish.Or(wish|wishServe)&wishServe != 0 {
		return
	}
	if !c.shard.list(c) {
		c.forget()
	} else if !c.shard.turnNow() {
		c.shard.inbox.ring()
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
	n := c.readPastMark(p)
	c.readMu.Unlock()
	if n > 0 || len(p) == 0 {
		if c.received.Consumed() >= c.notify.Load() {
			c.ask(0)
		}
		return n, nil
	}
	if err := c.whyNothing(status, 0); err != nil {
		return 0, err
	}
	return c.TryRead(p)
}

// whyNothing is what a read returns that has found nothing beyond the first skip
// bytes; nil if there is something after all. status is from before it looked.
func (c *TCPConn) whyNothing(status uint32, skip int) error {
	switch {
	case status&statusReadClosed != 0:
		return io.EOF
	case status&statusEnded != 0:
		if err := c.takeFailure(); err != nil {
			return err
		}
		return io.EOF
	case c.soft.Load() != nil:
		return c.takeSoft()
	case c.wish.Or(wishRead)&wishRead != 0:
		return ErrWouldBlock // the shard knows, and has not found anything yet
	case c.received.Readable() <= skip && c.status.Load()&(statusReadClosed|statusEnded) == 0:
		return ErrWouldBlock
	}
	return nil
}

// Peek copies what could be read, skipping the first skip bytes, and leaves it
// there. Errors are TryRead's.
func (c *TCPConn) Peek(p []byte, skip int) (int, error) {
	status := c.status.Load()
	switch {
	case status&statusClosed != 0:
		return 0, ErrClosed
	case status&statusShutRead != 0:
		return 0, io.EOF
	}
	c.readMu.Lock()
	pass, most := c.stretch(skip, len(p))
	n := c.received.Peek(p[:most], skip+pass)
	c.readMu.Unlock()
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	if err := c.whyNothing(status, skip+pass); err != nil {
		return 0, err
	}
	return c.Peek(p, skip)
}

// Buffered is how many bytes could be read now.
func (c *TCPConn) Buffered() int {
	pass, most := c.stretch(0, c.received.Readable())
	return max(most-pass, 0)
}

// Unsent is how many bytes have been written and not been acknowledged.
func (c *TCPConn) Unsent() int { return c.toSend.Len() }

// Drained reports whether nothing that was written waits any more, because the
// peer has acknowledged all of it or the connection has ended, and otherwise
// arranges that Drained or Hangup is told.
func (c *TCPConn) Drained() bool {
	if c.toSend.Len() == 0 || c.status.Load()&statusEnded != 0 {
		return true
	}
	c.wish.Or(wishDrained)
	return c.toSend.Len() == 0 || c.status.Load()&statusEnded != 0
}

// TryWrite takes as much of p as there is room for. Errors: ErrWouldBlock when
// that is nothing; ErrPipe after CloseWrite and after the connection has ended
// (the first time, why it ended); ErrClosed.
func (c *TCPConn) TryWrite(p []byte) (int, error) {
	if c.wish.Load()&wishMore != 0 {
		c.wish.And(^wishMore)
	}
	return c.tryWrite(p, false)
}

// TryWriteMore is TryWrite of bytes that more is to follow soon, so that they need not be sent
// yet if they do not fill a segment (MSG_MORE).
func (c *TCPConn) TryWriteMore(p []byte) (int, error) {
	c.wish.Or(wishMore)
	return c.tryWrite(p, false)
}

func (c *TCPConn) tryWrite(p []byte, urgent bool) (int, error) {
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
	case c.soft.Load() != nil:
		if err := c.takeSoft(); err != nil {
			return 0, err
		}
	case status&statusConnected == 0:
		c.wish.Or(wishWrite)
		if c.status.Load()&(statusConnected|statusEnded) == 0 {
			return 0, ErrWouldBlock
		}
	}
	c.writeMu.Lock()
	if urgent {
		p = p[:c.announce(len(p))]
	}
	first := c.toSend.Len() == 0
	n := c.toSend.Write(p)
	if n < len(p) && c.wish.Or(wishWrite)&wishWrite == 0 {
		n += c.toSend.Write(p[n:]) // room may have come before the shard could see the wish
	}
	c.writeMu.Unlock()
	switch {
	case n > 0 && first && n <= lightBytes:
		c.askNow(0)
		return n, nil
	case n > 0:
		c.ask(0)
		return n, nil
	}
	if len(p) == 0 && !urgent {
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
		return c.takeSoft()
	}
	return c.takeFailure()
}

// failSoftly leaves an error for the program that does not end the connection.
func (c *TCPConn) failSoftly(err error) {
	if err == nil {
		return
	}
	c.soft.Store(&err)
	c.wake()
	c.tell(Error)
}

func (c *TCPConn) takeSoft() error {
	if p := c.soft.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// Connected reports whether the handshake is complete.
func (c *TCPConn) Connected() bool { return c.status.Load()&statusConnected != 0 }

// Events is what holds now.
func (c *TCPConn) Events() Events {
	status := c.status.Load()
	var e Events
	if status&(statusReadClosed|statusShutRead|statusEnded) != 0 {
		e |= Readable | ReadHangup
	} else if c.readable() {
		e |= Readable
	}
	if c.urgentHere() {
		e |= Urgent
	}
	if status&statusEnded != 0 || status&statusConnected != 0 && c.writable() {
		e |= Writable
	}
	if status&statusEnded != 0 || status&statusReadClosed != 0 && status&statusShutWrite != 0 {
		e |= Hangup
	}
	if c.failure.Load() != nil || c.soft.Load() != nil {
		e |= Error
	}
	return e
}

// readable reports whether there is something to read, and otherwise arranges
// that Readable is told.
func (c *TCPConn) readable() bool {
	if c.hasInput() {
		return true
	}
	c.wish.Or(wishRead)
	return c.hasInput()
}

// TellEach has Readable told at each arrival from now on, also while there is something to
// read that was told of before (EPOLLET).
func (c *TCPConn) TellEach() {
	if c.wish.Load()&wishEach == 0 {
		c.wish.Or(wishEach)
	}
}

// writable is readable for room to write.
func (c *TCPConn) writable() bool {
	if c.hasRoom() {
		return true
	}
	c.wish.Or(wishWrite)
	return c.hasRoom()
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
	switch status := c.status.Load(); {
	case status&statusClosed != 0:
		return ErrClosed
	case status&statusConnected == 0:
		return ErrNotConnected
	}
	c.status.Or(statusShutWrite)
	c.askNow(wishCloseWrite)
	c.writers.ring()
	return nil
}

// Close lets go of the connection. What has been written is still sent, in the
// background, unless SetLinger says otherwise.
func (c *TCPConn) Close() error {
	if c.options.abortive() {
		return c.opError("close", c.leave(wishAbort))
	}
	return c.opError("close", c.leave(wishClose))
}

// Abort ends the connection with a reset.
func (c *TCPConn) Abort() error { return c.leave(wishAbort) }

// leave closes the socket: the program is gone, and the shard does the rest.
func (c *TCPConn) leave(wish uint32) error {
	if old := c.status.Or(statusClosed | statusShutRead | statusShutWrite); old&statusClosed != 0 {
		return ErrClosed
	}
	c.askNow(wish)
	if c.shard.hasEnded() {
		c.forget()
	}
	c.wake()
	c.readers.close()
	c.writers.close()
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
