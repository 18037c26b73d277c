package posix

import (
	"sync"
	"sync/atomic"
	"syscall"
)

// HostTCP is a TCP connection of the host's that was handed to the program. Its calls
// are Linux's, in non-blocking mode: what would wait is EAGAIN. None is made after Close.
type HostTCP interface {
	Read(b []byte) (int, Errno)
	Write(b []byte) (int, Errno)
	Recv(b []byte, flags int) (int, Errno)
	Send(b []byte, flags int) (int, Errno)
	// Events is what poll(2) tells.
	Events() Events
	Shutdown(how int) Errno
	// Option reads an option into value and returns how much of it was set.
	Option(level, name int, value []byte) (int, Errno)
	SetOption(level, name int, value []byte) Errno
	// Queued is the answer to a request of ioctl(2): FIONREAD, TIOCOUTQ, SIOCATMARK.
	Queued(request int) int
	// Descriptor is that of the host.
	Descriptor() int
	// Watch has look called now and whenever something to read or room to
	// write begins, with the events of either, until it returns true or the connection is closed. It is called
	// once. Errors: EMFILE.
	Watch(look func(of Events) (over bool)) Errno
	// Close closes the connection. abort sends a reset; refused says that no program
	// has had it.
	Close(abort, refused bool)
}

// hostTCP is a TCP socket whose connection is the host's. To the program it is one of
// Loam's: it has Loam's addresses and the descriptors of any open file, and what it
// asks of the host is a list (hostoption.go). The poller of the Go runtime waits for it
// as on Linux; whoever else waits is told by goroutines that do (HostTCP.Watch).
type hostTCP struct {
	socketBase
	host      HostTCP
	name      Address
	from      Address
	inherited []givenOption         // of who accepted it
	calls     atomic.Int64          // of the host under way; hostClosed is added by close
	watching  sync.Once             // guards HostTCP.Watch
	polled    atomic.Pointer[watch] // the descriptor that the runtime's poller has
	input     hostInput
}

// hostClosed is far more than there are calls at once.
const hostClosed = 1 << 32

// newHostTCP makes a socket for a connection that the socket l accepts.
func (l *tcpSocket) newHostTCP(h HostTCP, name, from Address) *hostTCP {
	s := &hostTCP{
		socketBase: socketBase{domain: l.domain, typ: l.typ, pro: l.pro},
		host:       h, name: name, from: from,
	}
	s.q.wanted = s.watch
	return s
}

// enter begins a call of the host, which keeps the connection from being closed under
// it, where another could get its number. false: it is closed.
func (s *hostTCP) enter() bool {
	if s.calls.Add(1) > hostClosed {
		s.leave()
		return false
	}
	return true
}

// leave ends the call. The last one closes what was closed meanwhile.
func (s *hostTCP) leave() {
	if s.calls.Add(-1) == hostClosed && s.calls.CompareAndSwap(hostClosed, 2*hostClosed) {
		s.host.Close(false, false)
	}
}

func (s *hostTCP) close() {
	s.enter()
	s.calls.Add(hostClosed)
	s.leave()
}

// watch has the queue told of what happens. It is called when somebody enters it.
func (s *hostTCP) watch() {
	s.watching.Do(func() {
		if !s.enter() {
			return
		}
		defer s.leave()
		if s.host.Watch(s.look) != 0 { // whoever waits must not wait for ever
			s.host.Shutdown(syscall.SHUT_RDWR)
		}
	})
}

// look tells the queue what of some events is ready. It returns true when the socket has
// been closed.
func (s *hostTCP) look(of Events) bool {
	if !s.enter() {
		return true
	}
	e := s.host.Events()
	s.leave()
	s.q.tell(e & of)
	return false
}

func (s *hostTCP) events() Events {
	if !s.enter() {
		return PollHup
	}
	defer s.leave()
	return s.host.Events()
}

func (s *hostTCP) read(b []byte) (int, Errno) {
	if !s.enter() {
		return 0, syscall.EBADF
	}
	defer s.leave()
	word, empty := s.input.look()
	if empty && len(b) > 0 {
		return 0, syscall.EAGAIN
	}
	n, errno := s.host.Read(b)
	if n > 0 || errno == syscall.EAGAIN {
		s.input.took(word, len(b), n)
	}
	return n, errno
}

func (s *hostTCP) write(b []byte) (int, Errno) {
	if !s.enter() {
		return 0, syscall.EBADF
	}
	n, errno := s.host.Write(b)
	s.leave()
	return n, errno
}

// Flags that mean something to the host; the others are served here, or by who calls.
const (
	hostRecvFlags = syscall.MSG_PEEK | syscall.MSG_OOB | syscall.MSG_TRUNC
	hostSendFlags = syscall.MSG_OOB | syscall.MSG_EOR | msgMore | syscall.MSG_NOSIGNAL
	msgMore       = 0x8000
)

func (s *hostTCP) recv(b []byte, flags int) (Received, Errno) {
	flags &= hostRecvFlags
	if flags == 0 {
		n, errno := s.read(b)
		return Received{N: n, Len: n}, errno
	}
	if !s.enter() {
		return Received{}, syscall.EBADF
	}
	defer s.leave()
	n, errno := s.host.Recv(b, flags)
	r := Received{N: min(n, len(b)), Len: n}
	if flags&syscall.MSG_TRUNC != 0 { // the bytes were thrown away (tcp(7))
		r.N = 0
	}
	return r, errno
}

// send ignores the address, as Linux does on a connection.
func (s *hostTCP) send(b []byte, m Outgoing) (int, Errno) {
	if m.Flags&msgFastOpen != 0 {
		return 0, syscall.EOPNOTSUPP
	}
	if !s.enter() {
		return 0, syscall.EBADF
	}
	defer s.leave()
	if flags := m.Flags & hostSendFlags; flags != 0 {
		return s.host.Send(b, flags)
	}
	return s.host.Write(b)
}

// recvUrgent receives the urgent byte.
func (s *hostTCP) recvUrgent(b []byte, flags int) (Received, Errno) {
	r, errno := s.recv(b, syscall.MSG_OOB|flags&syscall.MSG_PEEK)
	if r.Flags = syscall.MSG_OOB; errno == 0 && len(b) == 0 {
		r.Flags |= syscall.MSG_TRUNC
	}
	return r, errno
}

func (s *hostTCP) shutdown(how int) Errno {
	if !s.enter() {
		return syscall.EBADF
	}
	defer s.leave()
	errno := s.host.Shutdown(how)
	s.input.end()
	return errno
}

func (s *hostTCP) queued(request int) int {
	if !s.enter() {
		return 0
	}
	defer s.leave()
	return s.host.Queued(request)
}

func (s *hostTCP) buffered() int { return s.queued(fioNRead) }
func (s *hostTCP) unsent() int   { return s.queued(sioOutq) }
func (s *hostTCP) atMark() int   { return s.queued(sioAtMark) }

func (s *hostTCP) bind(Address) Errno      { return syscall.EINVAL }
func (s *hostTCP) listen(int) Errno        { return syscall.EINVAL }
func (s *hostTCP) accept() (socket, Errno) { return nil, syscall.EINVAL }
func (s *hostTCP) connect(a Address) Errno { return syscall.EISCONN }
func (s *hostTCP) local() Address          { return s.name }

// peer is the gateway, as long as there is a connection.
func (s *hostTCP) peer() (Address, Errno) {
	if s.linuxState() == linuxClose {
		return Address{}, syscall.ENOTCONN
	}
	return s.from, 0
}
