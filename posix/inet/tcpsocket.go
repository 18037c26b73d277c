package inet

import (
	"io"
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
)

// TCPSocket is a TCP socket (tcp(7)). It owns at most one object of the stack at a time: a TCPBinding
// once it is bound, and then a TCPListener or a TCPConn.
//
//	fresh ─ bind ─▶ bound ─ listen ─▶ listening
//	  └──────┴─ connect ─▶ connection
//
// Options are kept across these transitions.
type TCPSocket struct {
	Base
	net     *stack.Stack
	leaving *leaving     // recently closed connections of the process
	ports   *ports       // listening sockets of the process by port, for Listening
	queued  offeredQueue // connections handed over by the host, if the socket listens

	conn     atomic.Pointer[stack.TCPConn]     // stored with mu held; replaced only when connect is called again after a failure
	listener atomic.Pointer[stack.TCPListener] // stored once, with mu held

	// Guarded by mu.
	binding     *stack.TCPBinding
	opts        stack.TCPOptions // valid until the socket has a listener or a connection
	synRetries  int              // opts.SynRetries of the new socket, from tcp_syn_retries
	reported    bool             // connect(2) has returned 0 for the connection
	closed      bool
	fast        fastState
	nanoseconds bool          // timestamps have nanoseconds (SO_TIMESTAMPNS) instead of microseconds (SO_TIMESTAMP)
	given       []GivenOption // options that accepted connections inherit; a change replaces the slice
}

func newTCP(n *Network, domain int, owner uint32) *TCPSocket {
	opts := n.options()
	opts.Owner = owner
	return &TCPSocket{
		Base: NewBase(domain, linux.SOCK_STREAM, linux.IPPROTO_TCP),
		net:  n.stack, leaving: &n.leaving, ports: &n.ports,
		opts: opts, synRetries: opts.SynRetries, fast: fastState{setting: &n.FastOpen},
	}
}

// passive returns the options of a listener. tcp_syn_retries has no effect on SYN-ACKs, but TCP_SYNCNT has.
func (s *TCPSocket) passive() stack.TCPOptions {
	o := s.opts
	if o.SynRetries == s.synRetries {
		o.SynRetries = 0
	}
	return o
}

// adopt initializes a new socket for the accepted connection c, and returns it.
func (s *TCPSocket) adopt(c *stack.TCPConn) *TCPSocket {
	a := &TCPSocket{
		Base: NewBase(s.Domain, s.Type, s.Protocol),
		net:  s.net, leaving: s.leaving, reported: true,
		opts: c.Options(), nanoseconds: s.isStamped(timestampNS),
	}
	a.conn.Store(c)
	c.Watch(a.Relay)
	return a
}

// Events implements file.File. A fresh socket reports PollOut and PollHup, as on Linux.
func (s *TCPSocket) Events() file.Events {
	if c := s.conn.Load(); c != nil {
		if s.Waiters.WantsEvery() {
			c.ReportEach()
		}
		return socket.PollEvents(c.Events())
	}
	if l := s.listener.Load(); l != nil {
		e := socket.PollEvents(l.Events())
		if s.queued.len() > 0 {
			e |= file.PollIn
		}
		return e
	}
	if s.fast.waiting.Load() != nil {
		return file.PollOut
	}
	return file.PollOut | file.PollHup
}

// Bind reserves a local address. Errors: EINVAL if the socket is bound or connected, EADDRINUSE,
// EADDRNOTAVAIL.
func (s *TCPSocket) Bind(_ socket.Caller, a socket.Address) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	local, errno := s.bindName(a, s.opts.V6Only)
	if errno != 0 {
		return errno
	}
	if s.binding != nil || s.conn.Load() != nil {
		return linux.EINVAL
	}
	b, err := s.net.BindTCP(local, s.opts)
	if err == nil {
		s.binding = b
	}
	return file.ToErrno(err)
}

// Listen binds the socket if necessary and opens a listener for connections from the network and from
// the host.
func (s *TCPSocket) Listen(_ socket.Caller, backlog int) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.listener.Load() != nil:
		return 0 // a second listen(2) does not change the backlog
	case s.conn.Load() != nil:
		return linux.EINVAL
	}
	if s.binding == nil {
		b, err := s.net.BindTCP(s.any(), s.opts)
		if err != nil {
			return file.ToErrno(err)
		}
		s.binding = b
	}
	l, err := s.binding.Listen(backlog)
	if err != nil {
		return file.ToErrno(err)
	}
	if s.fast.most == 0 && s.fast.has(fastEveryListener) {
		s.fast.most = backlog
	}
	l.SetOptions(func(o *stack.TCPOptions) { *o = s.passive(); s.fast.listening(o) })
	l.SetFastOpenKeys(s.fast.keys)
	l.Watch(s.Relay)
	s.listener.Store(l)
	s.queued.begin(backlog)
	if on := s.opts.Device; on != nil && on.IsLoopback() {
		return 0 // the host's connections are never addressed to the loopback interface, so the listener needs no queue for them
	}
	s.ports.add(s, l.LocalAddrPort().Port())
	return 0
}

// Accept implements socket.Socket. It first returns connections of the host (posix/handed), and then connections of the
// stack.
func (s *TCPSocket) Accept() (socket.Socket, linux.Errno) {
	l := s.listener.Load()
	if l == nil {
		return nil, linux.EINVAL
	}
	if c, ok := s.queued.pop(); ok {
		return c.Accept(s), 0
	}
	c, err := l.TryAccept()
	if err == stack.ErrClosed {
		return nil, linux.EINVAL
	}
	if err != nil {
		return nil, file.ToErrno(err)
	}
	return s.adopt(c), 0
}

// Connect starts a handshake and returns EINPROGRESS. Later calls return EALREADY during the handshake, then the result once
// (0 or an error), and then EISCONN.
func (s *TCPSocket) Connect(_ socket.Caller, a socket.Address) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.fast.waiting.Load() != nil {
		if a.Family != linux.AF_UNSPEC {
			return linux.EISCONN
		}
		s.fast.waiting.Store(nil)
	}
	_, errno := s.open(a, nil, false)
	return errno
}

// open starts a handshake, and returns EINPROGRESS. If fast is set, it uses Fast Open, and n bytes of b are in the SYN. The caller
// holds mu.
func (s *TCPSocket) open(a socket.Address, b []byte, fast bool) (n int, errno linux.Errno) {
	if c := s.conn.Load(); c != nil {
		if errno, decided := s.reconnect(c, a); decided {
			return 0, errno
		}
	}
	_, errno = s.inetName(a)
	switch {
	case a.Family == linux.AF_UNSPEC:
		return 0, 0
	case errno != 0:
		return 0, errno
	case s.listener.Load() != nil:
		return 0, linux.EISCONN
	}
	if !fast && s.postpone(a) {
		return 0, 0
	}
	c, n, errno := s.dial(a, b, fast || s.fast.connect && s.fast.has(fastClient))
	if errno != 0 {
		return 0, errno
	}
	s.conn.Store(c)
	s.reported = false
	c.Watch(s.Relay)
	s.Waiters.Notify(file.PollIn | file.PollOut) // the waiters ask again, and so let the connection report its events
	return n, linux.EINPROGRESS
}

// reconnect handles connect(2) on a socket that already has the connection c. decided is false if c has failed, or if
// AF_UNSPEC dissolves it: the caller may then open another connection. The caller holds mu.
func (s *TCPSocket) reconnect(c *stack.TCPConn, a socket.Address) (linux.Errno, bool) {
	switch {
	case a.Family == linux.AF_UNSPEC:
		c.Abort()
	case c.Connected() && !s.reported:
		s.reported = true
		return 0, true
	case c.Connected():
		return linux.EISCONN, true
	case c.Events()&stack.Hangup == 0:
		return linux.EALREADY, true
	default:
		if errno := file.ToErrno(c.Err()); errno != 0 {
			return errno, true
		}
		c.Close()
	}
	c.Watch(nil)
	s.conn.Store(nil)
	return 0, false
}

// Shutdown implements shutdown(2). Shutting down a listener for reading closes it. Errors: ENOTCONN, also for a
// connection that is over.
func (s *TCPSocket) Shutdown(how int) linux.Errno {
	if l := s.listener.Load(); l != nil {
		if how != linux.SHUT_WR {
			s.stopListening(l)
		}
		return 0
	}
	c := s.conn.Load()
	if c == nil {
		return linux.ENOTCONN
	}
	var err error
	if c.Over() {
		err = stack.ErrNotConnected
	}
	if how != linux.SHUT_RD {
		if werr := c.CloseWrite(); err == nil {
			err = werr
		}
	}
	if how != linux.SHUT_WR {
		if rerr := c.CloseRead(); err == nil {
			err = rerr
		}
	}
	return file.ToErrno(err)
}

// stopListening closes the listener and resets the connections in its queues.
func (s *TCPSocket) stopListening(l *stack.TCPListener) {
	s.ports.remove(s, l.LocalAddrPort().Port())
	l.Close()
	s.queued.end()
}

// Close closes the socket. The stack sends the remaining data in the background: see leaving.
func (s *TCPSocket) Close() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.closed = true
	if l := s.listener.Load(); l != nil {
		s.stopListening(l) // closing the listener also releases the bound address
		return
	}
	if c := s.conn.Load(); c != nil {
		c.Close()
		s.leaving.add(c)
	}
	if s.binding != nil {
		s.binding.Close()
	}
}

func (s *TCPSocket) Local() socket.Address {
	if c := s.conn.Load(); c != nil {
		return s.inet(s.net, c.LocalAddrPort())
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.binding != nil {
		return s.inet(s.net, s.binding.LocalAddrPort())
	}
	return s.inet(s.net, s.any())
}

// Peer returns the peer of a connection. Errors: ENOTCONN, also once the connection is over, even if data is unread.
func (s *TCPSocket) Peer() (socket.Address, linux.Errno) {
	c := s.conn.Load()
	if c == nil || !c.Connected() || c.Over() {
		return socket.Address{}, linux.ENOTCONN
	}
	return s.inet(s.net, c.RemoteAddrPort()), 0
}

// AcceptedFrom returns the peer of a connection that accept(2) returns. The connection may be over.
func (s *TCPSocket) AcceptedFrom() socket.Address {
	return s.inet(s.net, s.conn.Load().RemoteAddrPort())
}

func (s *TCPSocket) Read(b []byte) (int, linux.Errno) {
	c := s.conn.Load()
	if c == nil {
		return 0, s.unconnected()
	}
	n, err := c.TryRead(b)
	switch err {
	case nil:
		return n, 0
	case io.EOF:
		return 0, 0
	}
	return 0, file.ToErrno(err)
}

func (s *TCPSocket) Write(b []byte) (int, linux.Errno) {
	if n, errno, done := s.sendFirst(b); done {
		return n, errno
	}
	c := s.conn.Load()
	if c == nil {
		return 0, linux.EPIPE
	}
	n, err := c.TryWrite(b)
	return n, file.ToErrno(err)
}

// Recv implements socket.Socket. TCP supports MSG_PEEK; MSG_OOB is handled by recvUrgent.
func (s *TCPSocket) Recv(b []byte, flags int) (socket.Received, linux.Errno) {
	c := s.conn.Load()
	if c == nil {
		return socket.Received{}, s.unconnected()
	}
	if flags&linux.MSG_PEEK == 0 {
		n, errno := s.Read(b)
		r := socket.Received{N: n, Len: n}
		if n > 0 {
			r.Control = s.arrival(c, 0)
		}
		return r, errno
	}
	n, err := c.Peek(b, 0)
	if err == io.EOF {
		err = nil
	}
	r := socket.Received{N: n, Len: n}
	if n > 0 {
		r.Control = s.arrival(c, n)
	}
	return r, file.ToErrno(err)
}

// Send implements socket.Socket. It ignores an address in m, as Linux does for a connected socket.
func (s *TCPSocket) Send(b []byte, m socket.Outgoing) (int, linux.Errno) {
	if m.Flags&linux.MSG_FASTOPEN != 0 {
		return s.sendFast(b, m.To)
	}
	if n, errno, done := s.sendFirst(b); done {
		return n, errno
	}
	if m.Flags&linux.MSG_OOB != 0 {
		return s.sendUrgent(b)
	}
	if m.Flags&linux.MSG_MORE != 0 {
		return s.writeMore(b)
	}
	return s.Write(b)
}

// writeMore writes bytes without the PSH flag, because the program will write more (MSG_MORE).
func (s *TCPSocket) writeMore(b []byte) (int, linux.Errno) {
	c := s.conn.Load()
	if c == nil {
		return 0, linux.EPIPE
	}
	n, err := c.TryWriteMore(b)
	return n, file.ToErrno(err)
}

// sendUrgent sends b. Its last byte is marked as urgent.
func (s *TCPSocket) sendUrgent(b []byte) (int, linux.Errno) {
	c := s.conn.Load()
	if c == nil {
		return 0, linux.EPIPE
	}
	n, err := c.TryWriteUrgent(b)
	return n, file.ToErrno(err)
}

// RecvUrgent receives the urgent byte. It consumes the byte even if b is empty.
func (s *TCPSocket) RecvUrgent(b []byte, flags int) (socket.Received, linux.Errno) {
	c := s.conn.Load()
	if c == nil {
		return socket.Received{}, linux.ENOTCONN
	}
	x, err := c.TryReadUrgent(flags&linux.MSG_PEEK != 0)
	if err != nil {
		return socket.Received{}, file.ToErrno(err)
	}
	r := socket.Received{N: copy(b, []byte{x}), Flags: linux.MSG_OOB}
	if r.Len = r.N; r.N == 0 {
		r.Flags |= linux.MSG_TRUNC
	}
	return r, 0
}

// AtMark implements socket.Marked.
func (s *TCPSocket) AtMark() (int, linux.Errno) {
	if c := s.conn.Load(); c != nil && c.AtMark() {
		return 1, 0
	}
	return 0, 0
}

func (s *TCPSocket) TakeError() linux.Errno {
	if c := s.conn.Load(); c != nil {
		return file.ToErrno(c.Err())
	}
	return 0
}

func (s *TCPSocket) Buffered() int {
	if c := s.conn.Load(); c != nil {
		return c.Buffered()
	}
	return 0
}

func (s *TCPSocket) Unsent() int {
	if c := s.conn.Load(); c != nil {
		return c.Unacknowledged()
	}
	return 0
}

// setOptions changes the options of the socket and of its listener or connection.
func (s *TCPSocket) setOptions(f func(*stack.TCPOptions)) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	f(&s.opts)
	if c := s.conn.Load(); c != nil {
		return file.ToErrno(c.SetOptions(f))
	}
	if l := s.listener.Load(); l != nil {
		l.SetOptions(f)
	}
	return 0
}

// options returns the current options.
func (s *TCPSocket) options() stack.TCPOptions {
	if c := s.conn.Load(); c != nil {
		return c.Options()
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.opts
}
