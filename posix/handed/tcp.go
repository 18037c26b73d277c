package handed

import (
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/inet"
	"loam/posix/socket"
)

// HostTCP is a TCP connection of the host that was handed to the program. Its methods have the meaning
// of Linux's calls in non-blocking mode: they return EAGAIN instead of waiting. No method is called
// after Close.
type HostTCP interface {
	// Read and Write transfer at most len(b) bytes; Recv and Send do so with MSG_* flags.
	Read(b []byte) (int, linux.Errno)
	Write(b []byte) (int, linux.Errno)
	Recv(b []byte, flags int) (int, linux.Errno)
	Send(b []byte, flags int) (int, linux.Errno)
	// Events returns the ready events, as poll(2) does.
	Events() file.Events
	// Shutdown implements shutdown(2); how is SHUT_RD, SHUT_WR or SHUT_RDWR.
	Shutdown(how int) linux.Errno
	// Option reads a socket option into value and returns the length of the option in bytes.
	Option(level, name int, value []byte) (int, linux.Errno)
	SetOption(level, name int, value []byte) linux.Errno
	// Queued returns the result of an ioctl(2) request: FIONREAD, SIOCOUTQ or SIOCATMARK.
	Queued(request int) int
	// Descriptor returns the host's file descriptor.
	Descriptor() int
	// Watch calls look now, and again whenever input arrives or room to write appears, until look
	// returns true or the connection is closed. The argument of look is the set of events that
	// may have occurred. Watch is called at most once. Errors: EMFILE.
	Watch(look func(of file.Events) (over bool)) linux.Errno
	// Close closes the connection. abort sends a reset. refused means that no program has received the
	// connection.
	Close(abort, refused bool)
}

// Socket is a TCP socket whose connection belongs to the host. To the program it looks like a socket
// of Loam: it has addresses of Loam's network and an ordinary descriptor. The options that reach the
// host are listed in option.go. The poller of the Go runtime watches the host's descriptor, as on
// Linux; other waiters are notified by goroutines (HostTCP.Watch).
type Socket struct {
	inet.Base
	host      HostTCP
	name      socket.Address     // local address
	from      socket.Address     // address of the peer
	inherited []inet.GivenOption // options that the program has set on the listening socket
	calls     atomic.Int64       // number of calls of the host in progress; hostClosed is added when the socket is closed
	watching  sync.Once          // makes sure that HostTCP.Watch is called once
	// watch of the descriptor for which the runtime's poller waits; nil: the poller does not wait
	polled atomic.Pointer[file.Watch]
	input  hostInput
}

// hostClosed is larger than any number of concurrent calls, so that the field calls also records that the socket is closed.
const hostClosed = 1 << 32

// newHostTCP returns the socket for a connection that the listening socket l accepts.
func newHostTCP(l *inet.TCPSocket, h HostTCP, name, from socket.Address) *Socket {
	s := &Socket{
		Base: inet.NewBase(l.Domain, l.Type, l.Protocol),
		host: h, name: name, from: from,
	}
	s.Waiters.OnAdd(s.watch)
	return s
}

// enter begins a call of the host, and returns false if the socket is closed. Until leave, the host's descriptor is not
// closed: otherwise another connection could get the same number during the call.
func (s *Socket) enter() bool {
	if s.calls.Add(1) > hostClosed {
		s.leave()
		return false
	}
	return true
}

// leave ends the call. If the socket was closed meanwhile, the last call closes the connection.
func (s *Socket) leave() {
	if s.calls.Add(-1) == hostClosed && s.calls.CompareAndSwap(hostClosed, 2*hostClosed) {
		s.host.Close(false, false)
	}
}

func (s *Socket) Close() {
	s.enter()
	s.calls.Add(hostClosed)
	s.leave()
}

// watch requests the events of the host's connection for the queue of this socket. The queue calls watch when a waiter
// registers.
func (s *Socket) watch() {
	s.watching.Do(func() {
		if !s.enter() {
			return
		}
		defer s.leave()
		if s.host.Watch(s.look) != 0 { // without the host's events, waiters would wait forever
			s.host.Shutdown(linux.SHUT_RDWR)
		}
	})
}

// look is called by HostTCP.Watch. It notifies the waiters of the given events, but only
// of events that are ready. It returns true when the socket has been closed, which ends
// the calls.
func (s *Socket) look(of file.Events) bool {
	if !s.enter() {
		return true
	}
	e := s.host.Events()
	s.leave()
	s.Waiters.Notify(e & of)
	return false
}

func (s *Socket) Events() file.Events {
	if !s.enter() {
		return file.PollHup
	}
	defer s.leave()
	return s.host.Events()
}

func (s *Socket) Read(b []byte) (int, linux.Errno) {
	if !s.enter() {
		return 0, linux.EBADF
	}
	defer s.leave()
	word, empty := s.input.look()
	if empty && len(b) > 0 {
		return 0, linux.EAGAIN
	}
	n, errno := s.host.Read(b)
	if n > 0 || errno == linux.EAGAIN {
		s.input.took(word, len(b), n)
	}
	return n, errno
}

func (s *Socket) Write(b []byte) (int, linux.Errno) {
	if !s.enter() {
		return 0, linux.EBADF
	}
	n, errno := s.host.Write(b)
	s.leave()
	return n, errno
}

// MSG_* flags that are passed to the host. Other flags are handled by this package or by its caller.
const (
	hostRecvFlags = linux.MSG_PEEK | linux.MSG_OOB | linux.MSG_TRUNC
	hostSendFlags = linux.MSG_OOB | linux.MSG_EOR | linux.MSG_MORE | linux.MSG_NOSIGNAL
)

// Recv implements socket.Socket. Without flags it is equivalent to read.
func (s *Socket) Recv(b []byte, flags int) (socket.Received, linux.Errno) {
	flags &= hostRecvFlags
	if flags == 0 {
		n, errno := s.Read(b)
		return socket.Received{N: n, Len: n}, errno
	}
	if !s.enter() {
		return socket.Received{}, linux.EBADF
	}
	defer s.leave()
	n, errno := s.host.Recv(b, flags)
	r := socket.Received{N: min(n, len(b)), Len: n}
	if flags&linux.MSG_TRUNC != 0 { // with MSG_TRUNC, TCP discards the bytes that it would store (tcp(7))
		r.N = 0
	}
	return r, errno
}

// Send implements socket.Socket. It ignores an address in m, as Linux does for a connected socket.
func (s *Socket) Send(b []byte, m socket.Outgoing) (int, linux.Errno) {
	if m.Flags&linux.MSG_FASTOPEN != 0 {
		return 0, linux.EOPNOTSUPP
	}
	if !s.enter() {
		return 0, linux.EBADF
	}
	defer s.leave()
	if flags := m.Flags & hostSendFlags; flags != 0 {
		return s.host.Send(b, flags)
	}
	return s.host.Write(b)
}

// RecvUrgent receives the urgent byte.
func (s *Socket) RecvUrgent(b []byte, flags int) (socket.Received, linux.Errno) {
	r, errno := s.Recv(b, linux.MSG_OOB|flags&linux.MSG_PEEK)
	if r.Flags = linux.MSG_OOB; errno == 0 && len(b) == 0 {
		r.Flags |= linux.MSG_TRUNC
	}
	return r, errno
}

func (s *Socket) Shutdown(how int) linux.Errno {
	if !s.enter() {
		return linux.EBADF
	}
	defer s.leave()
	errno := s.host.Shutdown(how)
	s.input.end()
	return errno
}

func (s *Socket) queued(request int) int {
	if !s.enter() {
		return 0
	}
	defer s.leave()
	return s.host.Queued(request)
}

func (s *Socket) Buffered() int              { return s.queued(linux.FIONREAD) }
func (s *Socket) Unsent() int                { return s.queued(linux.SIOCOUTQ) }
func (s *Socket) AtMark() (int, linux.Errno) { return s.queued(linux.SIOCATMARK), 0 }

// TakesStack reports that reads and writes accept memory on the caller's stack: see Description.TakesStack.
func (s *Socket) TakesStack() bool { return true }

func (s *Socket) Bind(socket.Caller, socket.Address) linux.Errno    { return linux.EINVAL }
func (s *Socket) Listen(socket.Caller, int) linux.Errno             { return linux.EINVAL }
func (s *Socket) Accept() (socket.Socket, linux.Errno)              { return nil, linux.EINVAL }
func (s *Socket) Connect(socket.Caller, socket.Address) linux.Errno { return linux.EISCONN }
func (s *Socket) Local() socket.Address                             { return s.name }

// Peer returns the client's address while the connection exists.
func (s *Socket) Peer() (socket.Address, linux.Errno) {
	if s.State() == inet.StateClose {
		return socket.Address{}, linux.ENOTCONN
	}
	return s.from, 0
}
