package posix

import (
	"encoding/binary"
	"syscall"

	"loam/fs"
)

// unixSocket is a socket of AF_UNIX (unix(7)): stream, datagram or sequenced
// packets. Everything stays in this process; nothing goes through the stack.
//
// A connection is two mailboxes, one for each direction, between two sockets. A
// datagram socket has one mailbox, and connecting it names where it sends.
type unixSocket struct {
	socketBase
	p *Process

	// Guarded by mu.
	name      string      // bound to; empty: unnamed
	node      fs.Node     // of the file that it is bound to; nil: none
	inbox     *mailbox    // what arrives; nil: a stream that is not connected
	outbox    *mailbox    // where it sends; nil: nowhere yet
	other     *unixSocket // the peer of a connection, the destination of datagrams
	peerName  string
	peerCreds Credentials
	listening bool
	backlog   int
	pending   []*unixSocket // connections that wait to be accepted, oldest first
	shutWrite bool
	closed    bool
	sendLimit int // SO_SNDBUF
	recvLimit int // SO_RCVBUF, remembered
}

// defaultUnixBuffer is net.core.wmem_default.
const defaultUnixBuffer = 212992

// maxUnixBuffer bounds SO_SNDBUF (net.core.wmem_max).
const maxUnixBuffer = 4 << 20

func (p *Process) newUnix(typ, protocol int) (*unixSocket, Errno) {
	if protocol != 0 && protocol != syscall.AF_UNIX {
		return nil, syscall.EPROTONOSUPPORT
	}
	switch typ {
	case syscall.SOCK_STREAM, syscall.SOCK_DGRAM, syscall.SOCK_SEQPACKET:
	case syscall.SOCK_RAW:
		typ = syscall.SOCK_DGRAM
	default:
		return nil, syscall.ESOCKTNOSUPPORT
	}
	s := &unixSocket{
		socketBase: socketBase{domain: syscall.AF_UNIX, typ: typ},
		p:          p, sendLimit: defaultUnixBuffer, recvLimit: defaultUnixBuffer,
	}
	if typ == syscall.SOCK_DGRAM {
		s.inbox = s.newMailbox()
	}
	return s, 0
}

func (s *unixSocket) newMailbox() *mailbox {
	return &mailbox{reader: &s.q}
}

// pair connects two new sockets (socketpair(2)).
func pair(a, b *unixSocket) {
	if a.typ != syscall.SOCK_DGRAM {
		a.inbox, b.inbox = a.newMailbox(), b.newMailbox()
	}
	a.outbox, b.outbox = b.inbox, a.inbox
	a.other, b.other = b, a
	a.peerCreds, b.peerCreds = b.p.options.Credentials, a.p.options.Credentials
}

func (s *unixSocket) stream() bool { return s.typ == syscall.SOCK_STREAM }

// boxes are the two mailboxes.
func (s *unixSocket) boxes() (in, out *mailbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inbox, s.outbox
}

func (s *unixSocket) events() Events {
	s.mu.Lock()
	in, out, limit := s.inbox, s.outbox, s.sendLimit
	listening, pending, shutWrite := s.listening, len(s.pending), s.shutWrite
	s.mu.Unlock()
	var e Events
	if listening {
		if pending > 0 {
			e |= PollIn
		}
		return e
	}
	if in == nil {
		return PollOut | PollHup
	}
	readable, ended, refused, failure := in.state()
	if readable || ended || refused {
		e |= PollIn
	}
	if ended || refused {
		e |= PollRdHup
	}
	if failure != 0 {
		e |= PollErr
	}
	if out == nil || out.hasRoom(limit, &s.q) {
		e |= PollOut
	}
	if out != nil {
		if _, _, gone, _ := out.state(); (gone || shutWrite) && (ended || refused) {
			e |= PollHup
		}
	}
	return e
}

func (s *unixSocket) bind(a Address) Errno {
	if a.Family != syscall.AF_UNIX {
		return syscall.EINVAL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name != "" {
		return syscall.EINVAL
	}
	name, node, errno := s.p.bindUnix(s, a.Name)
	if errno == 0 {
		s.name, s.node = name, node
	}
	return errno
}

func (s *unixSocket) listen(backlog int) Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.typ == syscall.SOCK_DGRAM:
		return syscall.EOPNOTSUPP
	case s.name == "" || s.inbox != nil:
		return syscall.EINVAL
	}
	s.listening = true
	s.backlog = max(backlog, 0)
	s.peerCreds = s.p.options.Credentials
	return 0
}

func (s *unixSocket) accept() (socket, Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.typ == syscall.SOCK_DGRAM:
		return nil, syscall.EOPNOTSUPP
	case !s.listening || s.closed:
		return nil, syscall.EINVAL
	case len(s.pending) == 0:
		return nil, syscall.EAGAIN
	}
	c := s.pending[0]
	s.pending = append([]*unixSocket(nil), s.pending[1:]...)
	return c, 0
}

func (s *unixSocket) connect(a Address) Errno {
	if a.Family == syscall.AF_UNSPEC && s.typ == syscall.SOCK_DGRAM {
		s.mu.Lock()
		s.other, s.outbox, s.peerName = nil, nil, ""
		s.mu.Unlock()
		return 0
	}
	if a.Family != syscall.AF_UNIX {
		return syscall.EINVAL
	}
	to, errno := s.p.findUnix(a.Name)
	switch {
	case errno != 0:
		return errno
	case to.typ != s.typ:
		return syscall.EPROTOTYPE
	case s.typ == syscall.SOCK_DGRAM:
		s.mu.Lock()
		s.other, s.outbox, s.peerName = to, to.inbox, a.Name
		s.mu.Unlock()
		s.q.tell(PollOut)
		return 0
	}
	return s.connectStream(to)
}

// connectStream makes the server's end of a connection and leaves it with the
// listener.
func (s *unixSocket) connectStream(to *unixSocket) Errno {
	s.mu.Lock()
	state, name := s.inbox != nil, s.name
	listening := s.listening
	s.mu.Unlock()
	switch {
	case state:
		return syscall.EISCONN
	case listening:
		return syscall.EINVAL
	}
	server, _ := s.p.newUnix(s.typ, 0)
	server.inbox = server.newMailbox()
	in := s.newMailbox()
	server.outbox, server.other, server.peerName = in, s, name
	server.peerCreds = s.p.options.Credentials

	to.mu.Lock()
	if !to.listening || to.closed {
		to.mu.Unlock()
		return syscall.ECONNREFUSED
	}
	if len(to.pending) > to.backlog {
		to.mu.Unlock()
		return syscall.EAGAIN
	}
	server.name = to.name
	creds, peerName := to.peerCreds, to.name
	s.mu.Lock() // two sockets: a listener before one that connects
	s.inbox, s.outbox, s.other = in, server.inbox, server
	s.peerCreds, s.peerName = creds, peerName
	s.mu.Unlock()
	to.pending = append(to.pending, server)
	to.mu.Unlock()
	to.q.tell(PollIn)
	s.q.tell(PollOut)
	return 0
}

func (s *unixSocket) shutdown(how int) Errno {
	in, out := s.boxes()
	if s.typ != syscall.SOCK_DGRAM && out == nil {
		return syscall.ENOTCONN
	}
	if how != syscall.SHUT_RD {
		s.mu.Lock()
		s.shutWrite = true
		s.mu.Unlock()
		if out != nil && s.typ != syscall.SOCK_DGRAM {
			out.end(0)
		}
	}
	if how != syscall.SHUT_WR && in != nil {
		in.refuse()
	}
	s.q.tell(PollIn | PollOut | PollRdHup)
	return 0
}

func (s *unixSocket) close() {
	s.mu.Lock()
	s.closed = true
	in, out, pending := s.inbox, s.outbox, s.pending
	name, node := s.name, s.node
	s.pending = nil
	s.mu.Unlock()
	s.p.names.release(s, name, node)
	for _, c := range pending {
		c.close()
	}
	unread := in != nil && in.refuse()
	if out == nil || s.typ == syscall.SOCK_DGRAM {
		return
	}
	if unread {
		out.end(syscall.ECONNRESET)
	} else {
		out.end(0)
	}
}

func (s *unixSocket) unixAddress(name string) Address {
	return Address{Family: syscall.AF_UNIX, Name: name}
}

func (s *unixSocket) local() Address {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unixAddress(s.name)
}

func (s *unixSocket) peer() (Address, Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.other == nil {
		return Address{}, syscall.ENOTCONN
	}
	return s.unixAddress(s.peerName), 0
}

func (s *unixSocket) read(b []byte) (int, Errno) {
	r, errno := s.recv(b, 0)
	for _, c := range r.Control { // read(2) has no place for them
		dropPassed(c.passed)
	}
	return r.N, errno
}

func (s *unixSocket) write(b []byte) (int, Errno) { return s.send(b, Outgoing{}) }

func (s *unixSocket) recv(b []byte, flags int) (Received, Errno) {
	in, _ := s.boxes()
	if in == nil {
		return Received{}, syscall.EINVAL
	}
	peek := flags&syscall.MSG_PEEK != 0
	var r Received
	var errno Errno
	if s.stream() {
		if len(b) == 0 {
			return r, 0
		}
		r, errno = in.takeStream(b, peek)
	} else {
		r, errno = in.takeMessage(b, peek)
	}
	if r.N < r.Len {
		r.Flags |= syscall.MSG_TRUNC
	}
	if s.wantsCredentials() && errno == 0 {
		r.Control = append(r.Control, s.credentials())
	}
	return r, errno
}

func (s *unixSocket) wantsCredentials() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passCred
}

// credentials is the SCM_CREDENTIALS message: every sender is this process.
func (s *unixSocket) credentials() Control {
	return Control{Level: syscall.SOL_SOCKET, Type: syscall.SCM_CREDENTIALS, Data: s.p.options.Credentials.value()}
}

// value is the struct ucred.
func (c Credentials) value() []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(c.PID))
	b = binary.NativeEndian.AppendUint32(b, uint32(c.UID))
	return binary.NativeEndian.AppendUint32(b, uint32(c.GID))
}

func (s *unixSocket) send(b []byte, m Outgoing) (int, Errno) {
	s.mu.Lock()
	out, limit, shut, from := s.outbox, s.sendLimit, s.shutWrite, s.name
	s.mu.Unlock()
	switch {
	case shut:
		return 0, syscall.EPIPE
	case m.To.Family != syscall.AF_UNSPEC:
		var errno Errno
		if out, errno = s.destination(m.To); errno != 0 {
			return 0, errno
		}
	case out == nil:
		return 0, syscall.ENOTCONN
	}
	if s.stream() && len(b) == 0 {
		return 0, 0
	}
	l := letter{data: b}
	if s.typ == syscall.SOCK_DGRAM && from != "" { // an unnamed sender has no address at all
		l.from = s.unixAddress(from)
	}
	for _, c := range m.Control {
		if len(c.passed) > 0 {
			l.control = append(l.control, c)
		}
	}
	n, errno := out.put(l, limit, s.stream(), &s.q)
	if errno == syscall.EPIPE && s.typ == syscall.SOCK_DGRAM {
		errno = syscall.ECONNREFUSED
	}
	if errno == 0 {
		for i := range m.Control {
			m.Control[i].passed = nil // the receiver's now
		}
	}
	return n, errno
}

// destination is where a datagram with an address goes.
func (s *unixSocket) destination(a Address) (*mailbox, Errno) {
	if s.typ != syscall.SOCK_DGRAM {
		if in, _ := s.boxes(); in != nil {
			return nil, syscall.EISCONN
		}
		return nil, syscall.EOPNOTSUPP
	}
	if a.Family != syscall.AF_UNIX {
		return nil, syscall.EINVAL
	}
	to, errno := s.p.findUnix(a.Name)
	switch {
	case errno != 0:
		return nil, errno
	case to.typ != syscall.SOCK_DGRAM:
		return nil, syscall.EPROTOTYPE
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.other != nil && to.other != s {
		return nil, syscall.EPERM
	}
	return to.inbox, 0
}

func (s *unixSocket) takeError() Errno {
	in, _ := s.boxes()
	if in == nil {
		return 0
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	errno := in.failure
	in.failure = 0
	return errno
}

func (s *unixSocket) option(level, name int) ([]byte, Errno) {
	if level != syscall.SOL_SOCKET {
		return nil, syscall.EOPNOTSUPP
	}
	s.mu.Lock()
	send, recv, listening, creds := s.sendLimit, s.recvLimit, s.listening, s.peerCreds
	s.mu.Unlock()
	switch name {
	case syscall.SO_SNDBUF:
		return intValue(send), 0
	case syscall.SO_RCVBUF:
		return intValue(recv), 0
	case syscall.SO_ACCEPTCONN:
		return boolValue(listening), 0
	case syscall.SO_PEERCRED:
		return creds.value(), 0
	case syscall.SO_REUSEADDR, soReusePort, syscall.SO_KEEPALIVE, syscall.SO_BROADCAST:
		return intValue(0), 0
	case syscall.SO_LINGER:
		return make([]byte, 8), 0
	}
	return s.socketBase.option(name)
}

func (s *unixSocket) setOption(level, name int, value []byte) Errno {
	if level != syscall.SOL_SOCKET {
		return syscall.EOPNOTSUPP
	}
	switch name {
	case syscall.SO_SNDBUF, syscall.SO_RCVBUF, soSndBufForce, soRcvBufForce:
		n, errno := parseInt(value)
		if errno != 0 {
			return errno
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		n = bufferSize(n)
		if name == syscall.SO_SNDBUF || name == soSndBufForce {
			s.sendLimit = n
		} else {
			s.recvLimit = n
		}
		return 0
	case syscall.SO_REUSEADDR, soReusePort, syscall.SO_KEEPALIVE, syscall.SO_BROADCAST, syscall.SO_LINGER:
		return 0 // nothing to change: names are not reused, and nothing lingers
	}
	return s.socketBase.setOption(name, value)
}

// bufferSize is what SO_SNDBUF and SO_RCVBUF set: twice what is asked, within
// bounds (socket(7)).
func bufferSize(n int) int {
	return max(4608, min(2*n, maxUnixBuffer))
}

func (s *unixSocket) buffered() int {
	if in, _ := s.boxes(); in != nil {
		return in.waiting(s.stream())
	}
	return 0
}

func (s *unixSocket) unsent() int {
	if _, out := s.boxes(); out != nil {
		return out.queued()
	}
	return 0
}
