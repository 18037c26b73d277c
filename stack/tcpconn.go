package stack

import (
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/internal/list"
	"loam/stack/port"
	"loam/stack/ring"
	"loam/stack/socket"
	"loam/stack/tcp"
	"loam/stack/timer"
)

// TCPConn is a TCP connection as a program holds it. It connects the shard, which owns the TCP state machine, with the
// program's goroutines. They share two byte rings (received, toSend), a few atomic words, and one waiter per direction.
//
// A program's goroutine never uses the TCP state machine. It puts bytes in a ring or a bit in wish, and asks the shard
// to look at the connection (touch). The shard never waits for the program; it updates status and the rings.
//
// The methods in tcpconn.go are called by the program and never wait for the peer. Read,
// Write and deadlines are in net.go. The shard's side is in tcpserve.go.
type TCPConn struct {
	watcher
	shard         *shard
	local, remote netip.AddrPort
	received      ring.Receive
	toSend        ring.Send
	readers       socket.Waiter
	writers       socket.Waiter
	readMu        sync.Mutex // held while reading from received
	writeMu       sync.Mutex // held while writing to toSend
	turn          sync.Mutex // held by Write until it has written everything, so that Writes do not interleave

	unsentLow atomic.Uint32 // TCPOptions.UnsentLow, or 0 if UnsentLow is negative
	status    atomic.Uint32 // status bits, set by the shard and by the program
	wish      atomic.Uint32 // requests of the program to the shard (wish bits); the program sets them, and the shard clears them
	label     uint32        // flow label of the connection's IPv6 packets; belongs to the shard, and is here to avoid padding
	failure   atomic.Pointer[error]
	soft      atomic.Pointer[error] // an error that the connection may survive: see TCPOptions.SoftErrors
	options   optionBox
	stamps    ring.Stamps
	urgent    atomic.Uint64 // position of the urgent byte: see tcpurgent.go
	notify    atomic.Uint64 // a read beyond this offset may open the window and must notify the shard
	corked    atomic.Uint64 // a write that ends before this offset fills no segment, and need not notify the shard; 0: none (TCPOptions.Cork)

	// The fields from here on belong to the shard of the connection.
	machine   *tcp.Conn
	flow      *port.Flow   // nil: a forwarder's connection, whose ports are not ours
	listener  *TCPListener // the listener that received the connection, until the connection is handed to a program; then nil
	offerBy   tcp.Time     // deadline for handing over a connection without data; 0: at once
	path      path
	device    *Interface // copy of TCPOptions.Device
	timer     timer.Entry
	orphan    list.Node[TCPConn] // the connection's place in shard.orphans
	charged   uint32             // the connection's share of shard.orphanBytes
	sendLimit uint32             // limit of toSend in bytes, before unsentLow is applied
	pathSeen  uint32             // the generation of the stack's path MTUs on which path is based
	ipID      uint16
	ttl, tos  uint8 // TTL or hop limit, and type of service, that the program has set; ttl 0: path.hops is used

	stamped        bool // copy of TCPOptions.Stamps
	narrow         bool // routers may fragment the connection's packets: see ip.PathMTU
	dirty          bool // the connection is in shard.dirty
	stalled        bool // the connection is in txLink.stalled or txLink.opening
	removed        bool
	evicted        bool // the connection was an orphan and has been reset
	urgentReported bool // the arrival of the urgent byte has been reported
	fixedSend      bool // sendLimit does not grow, because the program has set it

	sawEnd     uint64        // value of toSend.End that was last passed to the TCP state machine
	urgentTo   atomic.Uint64 // used with wishUrgent: the end of the urgent data
	sawUrgent  uint64        // end of the urgent data that was last published
	reportedTo uint64        // used with wishEach: how much data had arrived at the last report
}

// Bits of TCPConn.status. A bit is never cleared.
const (
	statusConnected  uint32 = 1 << iota // the handshake is complete
	statusReadClosed                    // the peer has ended its stream, and all data of the stream is in the ring
	statusEnded                         // the TCP state machine has ended; the field failure says why
	statusShutRead                      // the program has shut down reading
	statusShutWrite                     // the program has shut down writing
	statusClosed                        // the program has closed the socket
	statusOver                          // the TCP state machine has ended or is in TIME-WAIT
)

// Bits of TCPConn.wish: requests of the program to the shard.
const (
	wishServe      uint32 = 1 << iota // the connection is already in the shard's inbox
	wishCloseWrite                    //
	wishClose                         //
	wishAbort                         //
	wishOptions                       // the options of the connection have changed
	wishRead                          // a read found no data: report when data arrives
	wishWrite                         // a write found no room: report when there is room
	wishUrgent                        // the program has written urgent data, up to urgentTo
	wishDrained                       // the program waits until all data is acknowledged: report when it is
	wishMore                          // the program will write more data (MSG_MORE); set until the next write without MSG_MORE
	wishEach                          // report every arrival, even if earlier data is unread; never cleared
)

// LocalAddrPort returns the local address and port.
func (c *TCPConn) LocalAddrPort() netip.AddrPort { return c.local }

// RemoteAddrPort returns the address and port of the peer.
func (c *TCPConn) RemoteAddrPort() netip.AddrPort { return c.remote }

// ask sets bits of TCPConn.wish, and queues the connection in the shard's inbox unless it is already there.
func (c *TCPConn) ask(wish uint32) {
	if c.wish.Or(wish|wishServe)&wishServe == 0 && !c.shard.touch(c) {
		c.forget() // the shard has ended
	}
}

// askNow is like ask, but does the shard's work on the calling goroutine if the shard is idle.
func (c *TCPConn) askNow(wish uint32) {
	if c.wish.Or(wish|wishServe)&wishServe == 0 && !c.shard.list(c) {
		c.forget()
	} else if !c.shard.turnNow() {
		c.shard.inbox.ring()
	}
}

// TryRead reads available data. Errors: ErrWouldBlock; io.EOF at the end of the stream; the reason why the connection ended, once
// all received data has been read; ErrClosed.
func (c *TCPConn) TryRead(p []byte) (int, error) {
	status := c.status.Load() // read before the ring: a bit about the end of the stream is set after all data is in the ring
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
		c.noteRead(n)
		return n, nil
	}
	if err := c.whyNothing(status, 0); err != nil {
		return 0, err
	}
	return c.TryRead(p)
}

// noteRead notifies the shard after a read of n bytes if the peer must get a segment for it: a new window, or an
// acknowledgment for which the peer's next small segment may wait (Nagle's algorithm). After a small read of the last
// bytes, the calling goroutine does the work of an idle shard.
func (c *TCPConn) noteRead(n int) {
	switch {
	case c.received.Consumed() < c.notify.Load():
	case n <= smallRead && c.received.Readable() == 0:
		c.askNow(0)
	default:
		c.ask(0)
	}
}

// smallRead is the largest read, in bytes, that noteRead regards as small. A reader of bulk data reads more, or leaves data
// unread; it is faster if the shard works in parallel.
const smallRead = 4 << 10

// whyNothing returns the error of a read that found no data beyond the first skip bytes. It returns nil if data has arrived
// meanwhile. status must have been loaded before the read.
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
		return ErrWouldBlock // wishRead was already set, and the shard clears it when data arrives
	case c.received.Readable() <= skip && c.status.Load()&(statusReadClosed|statusEnded) == 0:
		return ErrWouldBlock
	}
	return nil
}

// Peek copies available data without consuming it, and skips the first skip bytes. Its errors are those of TryRead.
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

// Buffered returns the number of bytes that can be read now.
func (c *TCPConn) Buffered() int {
	pass, most := c.stretch(0, c.received.Readable())
	return max(most-pass, 0)
}

// Unacknowledged returns the number of bytes written but not yet acknowledged (SIOCOUTQ).
func (c *TCPConn) Unacknowledged() int { return c.toSend.Len() }

// Unsent returns the number of bytes written but not yet sent (SIOCOUTQNSD). It is 0 after the connection has ended.
func (c *TCPConn) Unsent() (n int) {
	c.shard.request(func(*shard) {
		if !c.removed {
			n = int(c.toSend.End() - c.machine.SentTo())
		}
	})
	return n
}

// Drained reports whether no written data is outstanding, because the peer has acknowledged all of it or the connection has
// ended. If it returns false, the event Drained or Hangup will be reported later.
func (c *TCPConn) Drained() bool {
	if c.toSend.Len() == 0 || c.status.Load()&statusEnded != 0 {
		return true
	}
	c.wish.Or(wishDrained)
	return c.toSend.Len() == 0 || c.status.Load()&statusEnded != 0
}

// TryWrite writes as much of p as fits into the send buffer. Errors: ErrWouldBlock if nothing fits; ErrPipe after CloseWrite and
// after the connection has ended (the first call returns why it ended); ErrClosed.
func (c *TCPConn) TryWrite(p []byte) (int, error) {
	released := c.wish.Load()&wishMore != 0
	if released {
		c.wish.And(^wishMore)
	}
	return c.tryWrite(p, released, false)
}

// TryWriteMore is TryWrite for bytes that more will soon follow (MSG_MORE). They need not be sent yet if they fill no segment.
func (c *TCPConn) TryWriteMore(p []byte) (int, error) {
	c.wish.Or(wishMore)
	return c.tryWrite(p, false, false)
}

// tryWrite implements TryWrite. If urgent is set, the last byte written is marked as urgent. After a small write into
// an empty send buffer, or one that releases the data of TryWriteMore, the calling goroutine does the work of an idle shard,
// and so sends the data. The shard does not notice a write that only adds to data held back by the option Cork, until it
// sends that data.
func (c *TCPConn) tryWrite(p []byte, released, urgent bool) (int, error) {
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
	released = released || c.toSend.Len() == 0
	n := c.toSend.Write(p)
	if n < len(p) && c.wish.Or(wishWrite)&wishWrite == 0 {
		n += c.toSend.Write(p[n:]) // the shard may have made room before it could see wishWrite
	}
	c.writeMu.Unlock()
	switch {
	case n > 0 && n == len(p) && !urgent && c.toSend.End() < c.corked.Load():
		return n, nil
	case n > 0 && released && n <= lightBytes:
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

// takeFailure returns why the connection ended. Only the first call returns the error; later calls return nil.
func (c *TCPConn) takeFailure() error {
	if p := c.failure.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// Err returns and clears the pending error (SO_ERROR).
func (c *TCPConn) Err() error {
	if c.status.Load()&statusEnded == 0 {
		return c.takeSoft()
	}
	return c.takeFailure()
}

// failSoftly stores an error for the program that does not end the connection.
func (c *TCPConn) failSoftly(err error) {
	if err == nil {
		return
	}
	c.soft.Store(&err)
	c.wake()
	c.reportEvents(Error)
}

func (c *TCPConn) takeSoft() error {
	if p := c.soft.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// Connected reports whether the handshake is complete.
func (c *TCPConn) Connected() bool { return c.status.Load()&statusConnected != 0 }

// Over reports whether the connection no longer exists: it was reset, or both sides have ended their streams and
// acknowledged the end. Received data may still be unread.
func (c *TCPConn) Over() bool { return c.status.Load()&statusOver != 0 }

// Events returns the conditions that hold now.
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

// readable reports whether there is data to read. If not, Readable will be reported when data arrives.
func (c *TCPConn) readable() bool {
	if c.hasInput() {
		return true
	}
	c.wish.Or(wishRead)
	return c.hasInput()
}

// ReportEach enables the report of Readable at each arrival, even if earlier data has been reported and is unread (EPOLLET).
func (c *TCPConn) ReportEach() {
	if c.wish.Load()&wishEach == 0 {
		c.wish.Or(wishEach)
	}
}

// writable reports whether there is room to write. If not, Writable will be reported later.
func (c *TCPConn) writable() bool {
	if c.hasRoom() {
		return true
	}
	c.wish.Or(wishWrite)
	return c.hasRoom()
}

// CloseRead discards received data from now on. Reads return io.EOF.
func (c *TCPConn) CloseRead() error {
	if old := c.status.Or(statusShutRead); old&statusClosed != 0 {
		return ErrClosed
	}
	c.readMu.Lock()
	c.received.Discard(c.received.Readable())
	c.readMu.Unlock()
	c.wake()
	c.reportEvents(ReadHangup)
	c.ask(0)
	return nil
}

// CloseWrite ends the outgoing stream after the data already written.
func (c *TCPConn) CloseWrite() error {
	switch status := c.status.Load(); {
	case status&statusClosed != 0:
		return ErrClosed
	case status&statusConnected == 0:
		return ErrNotConnected
	}
	c.status.Or(statusShutWrite)
	c.askNow(wishCloseWrite)
	c.writers.Ring()
	return nil
}

// Close closes the connection. Data already written is still sent in the background, unless SetLinger has selected a reset.
func (c *TCPConn) Close() error {
	if c.options.abortive() {
		return c.opError("close", c.leave(wishAbort))
	}
	return c.opError("close", c.leave(wishClose))
}

// Abort resets the connection and closes the socket.
func (c *TCPConn) Abort() error { return c.leave(wishAbort) }

// leave closes the socket on the program's side. The shard then ends the connection as the bits in wish request.
func (c *TCPConn) leave(wish uint32) error {
	if old := c.status.Or(statusClosed | statusShutRead | statusShutWrite); old&statusClosed != 0 {
		return ErrClosed
	}
	c.askNow(wish)
	if c.shard.hasEnded() {
		c.forget()
	}
	c.wake()
	c.readers.Close()
	c.writers.Close()
	return nil
}

// wake wakes all waiting goroutines, so that they try again.
func (c *TCPConn) wake() {
	c.readers.Ring()
	c.writers.Ring()
	c.reportEvents(Readable | Writable)
}

// Info returns the state of the connection. It is the zero Info after the stack has been closed.
func (c *TCPConn) Info() tcp.Info {
	var info tcp.Info
	c.shard.request(func(sh *shard) { info = c.machine.Info(sh.now) })
	return info
}

// Arrived returns the arrival time of the last byte that was read, by the current wall clock (SO_TIMESTAMP). If peek is not
// 0, it returns the arrival time of the byte peek positions later. It returns the present time if the shard has not recorded
// the arrival yet, or the byte arrived before TCPOptions.Stamps was set. As on Linux, the bytes of one turn have one time.
func (c *TCPConn) Arrived(peek int) time.Time {
	read := c.received.Consumed()
	at, ok := c.stamps.Before(read+uint64(peek), read)
	if !ok {
		return time.Now()
	}
	return time.Now().Add(at - c.shard.stack.now())
}
