package unix

import (
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/socket"
)

// Socket is an AF_UNIX socket (unix(7)): stream, datagram or sequenced packets. All its data stays
// in the process and bypasses the stack.
//
// A connection consists of two sockets and two mailboxes, one for each direction. A datagram socket has
// one mailbox; connecting it only sets the destination.
type Socket struct {
	socket.Base
	names *Names

	// Guarded by mu.
	owner     uint32          // user ID of the creator, who may change the permissions
	name      string          // bound name; empty: unnamed
	node      fs.Node         // node of the file to which the socket is bound; nil: none
	inbox     *socket.Mailbox // mailbox for received data; nil: a stream socket that is not connected
	outbox    *socket.Mailbox // inbox of the peer; nil: not connected
	other     *Socket         // the peer of a connection, or the destination of datagrams
	peerName  string          // bound name of the peer when the connection was made
	peerCreds Credentials     // SO_PEERCRED; for a listener, the credentials that its peers get
	listening bool            // listen(2) has been called
	joining   bool            // a thread is in connectStream
	backlog   int             // argument of listen(2)
	pending   []*Socket       // connections waiting for accept, oldest first
	shutWrite bool            // shut down for writing (shutdown(2))
	closed    bool
	mode      fs.Mode // permission bits, which a file that bind(2) creates gets
	sendLimit int     // SO_SNDBUF
	recvLimit int     // SO_RCVBUF, which is stored and has no effect
}

// DefaultBuffer is the default buffer size of a socket in bytes (net.core.wmem_default).
const DefaultBuffer = 212992

// maxBuffer limits SO_SNDBUF, in bytes (net.core.wmem_max).
const maxBuffer = 4 << 20

// Credentials are the IDs of a process.
type Credentials = socket.Credentials

// New returns an unconnected socket of a user. Names that it binds are registered in names. SOCK_RAW means SOCK_DGRAM, as
// on Linux.
func New(names *Names, owner uint32, typ, protocol int) (*Socket, linux.Errno) {
	if protocol != 0 && protocol != linux.AF_UNIX {
		return nil, linux.EPROTONOSUPPORT
	}
	switch typ {
	case linux.SOCK_STREAM, linux.SOCK_DGRAM, linux.SOCK_SEQPACKET:
	case linux.SOCK_RAW:
		typ = linux.SOCK_DGRAM
	default:
		return nil, linux.ESOCKTNOSUPPORT
	}
	s := &Socket{
		Base:  socket.Base{Domain: linux.AF_UNIX, Type: typ},
		names: names, owner: owner, mode: 0o777, peerCreds: socket.NoPeer, sendLimit: DefaultBuffer, recvLimit: DefaultBuffer,
	}
	if typ == linux.SOCK_DGRAM {
		s.inbox = s.newMailbox()
	}
	return s, 0
}

func (s *Socket) newMailbox() *socket.Mailbox {
	return &socket.Mailbox{Reader: &s.Waiters}
}

// Pair connects two new sockets (socketpair(2)). Each is the peer of the other, with the credentials of the caller.
func Pair(by socket.Caller, a, b *Socket) {
	if a.Type != linux.SOCK_DGRAM {
		a.inbox, b.inbox = a.newMailbox(), b.newMailbox()
	} else {
		a.inbox.AcceptOnly(&b.Waiters)
		b.inbox.AcceptOnly(&a.Waiters)
	}
	a.outbox, b.outbox = b.inbox, a.inbox
	a.other, b.other = b, a
	a.peerCreds = by.Credentials()
	b.peerCreds = a.peerCreds
}

func (s *Socket) Mode() uint32 {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return uint32(fs.Socket | s.mode)
}

// SetOwner sets the owner. It is called when accept(2) returns the socket, for the user of the caller.
func (s *Socket) SetOwner(user uint32) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.owner = user
}

// Chmod implements file.Permitted. It does not change the file of a socket that is bound already.
func (s *Socket) Chmod(by *fs.Credentials, mode fs.Mode) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !by.Owns(fs.Attr{UID: s.owner}) {
		return linux.EPERM
	}
	s.mode = mode
	return 0
}

func (s *Socket) stream() bool { return s.Type == linux.SOCK_STREAM }

// boxes returns the mailbox for received data and the mailbox of the peer.
func (s *Socket) boxes() (in, out *socket.Mailbox) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.inbox, s.outbox
}

// Events implements file.File. A listener is readable while connections are pending. PollHup means that both
// directions are shut.
func (s *Socket) Events() file.Events {
	s.Mu.Lock()
	in, out, limit := s.inbox, s.outbox, s.sendLimit
	listening, pending, shutWrite := s.listening, len(s.pending), s.shutWrite
	s.Mu.Unlock()
	var e file.Events
	if listening {
		if pending > 0 {
			e |= file.PollIn
		}
		return e
	}
	if in == nil {
		return file.PollOut | file.PollBand | file.PollHup
	}
	readable, ended, refused, failure := in.State()
	if readable || ended || refused {
		e |= file.PollIn
	}
	if ended || refused {
		e |= file.PollRdHup
	}
	if failure != 0 {
		e |= file.PollErr
	}
	if out == nil || out.HasRoom(limit, &s.Waiters) {
		e |= file.PollOut | file.PollBand
	}
	if out != nil {
		if _, _, gone, _ := out.State(); (gone || shutWrite) && (ended || refused) {
			e |= file.PollHup
		}
	}
	return e
}

func (s *Socket) Bind(by socket.Caller, a socket.Address) linux.Errno {
	if a.Family != linux.AF_UNIX {
		return linux.EINVAL
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.closed: // nothing would remove the name
		return linux.EBADF
	case s.name != "":
		return linux.EINVAL
	}
	name, node, errno := s.names.bind(by, s, a.Name)
	if errno == 0 {
		s.name, s.node = name, node
	}
	return errno
}

func (s *Socket) Listen(by socket.Caller, backlog int) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.Type == linux.SOCK_DGRAM:
		return linux.EOPNOTSUPP
	case s.name == "" || s.inbox != nil || s.joining:
		return linux.EINVAL
	}
	s.listening = true
	s.backlog = backlog
	s.peerCreds = by.Credentials()
	return 0
}

func (s *Socket) Accept() (socket.Socket, linux.Errno) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.Type == linux.SOCK_DGRAM:
		return nil, linux.EOPNOTSUPP
	case !s.listening || s.closed:
		return nil, linux.EINVAL
	case len(s.pending) == 0:
		return nil, linux.EAGAIN
	}
	c := s.pending[0]
	s.pending = append([]*Socket(nil), s.pending[1:]...)
	return c, 0
}

// Shutdown implements shutdown(2) through the mailboxes, so the peer notices it.
func (s *Socket) Shutdown(how int) linux.Errno {
	in, out := s.boxes()
	if s.Type != linux.SOCK_DGRAM && out == nil {
		return linux.ENOTCONN
	}
	if how != linux.SHUT_RD {
		s.Mu.Lock()
		s.shutWrite = true
		s.Mu.Unlock()
		if out != nil && s.Type != linux.SOCK_DGRAM {
			out.End(0, 0)
		}
	}
	if how != linux.SHUT_WR && in != nil {
		_, passed := in.Refuse()
		file.ReleaseAll(passed)
	}
	s.Waiters.Notify(file.PollIn | file.PollOut | file.PollRdHup)
	return 0
}

// Close releases the name, closes pending connections, and ends the peer's input: with ECONNRESET if
// data was left unread.
func (s *Socket) Close() { file.ReleaseAll(s.CloseCarrier()) }

// CloseCarrier implements file.Carrier.
func (s *Socket) CloseCarrier() (passed []*file.Description) {
	s.Mu.Lock()
	s.closed = true
	in, out, pending := s.inbox, s.outbox, s.pending
	name, node := s.name, s.node
	s.pending = nil
	s.Mu.Unlock()
	s.names.release(s, name, node)
	for _, c := range pending {
		passed = append(passed, c.CloseCarrier()...)
	}
	unread := false
	if in != nil {
		var more []*file.Description
		unread, more = in.Refuse()
		passed = append(passed, more...)
	}
	if out == nil || s.Type == linux.SOCK_DGRAM {
		return passed
	}
	if unread {
		out.End(linux.ECONNRESET, file.PollHup)
	} else {
		out.End(0, file.PollHup)
	}
	return passed
}

func (s *Socket) unixAddress(name string) socket.Address {
	return socket.Address{Family: linux.AF_UNIX, Name: name}
}

func (s *Socket) Local() socket.Address {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.unixAddress(s.name)
}

func (s *Socket) Peer() (socket.Address, linux.Errno) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.other == nil {
		return socket.Address{}, linux.ENOTCONN
	}
	return s.unixAddress(s.peerName), 0
}

func (s *Socket) Read(b []byte) (int, linux.Errno) {
	r, errno := s.Recv(b, 0)
	socket.DropControl(r.Control) // read(2) has no control messages
	return r.N, errno
}

// Write implements file.File for a writer that is not a process.
func (s *Socket) Write(b []byte) (int, linux.Errno) {
	return s.Send(b, socket.Outgoing{Sender: socket.Unknown})
}

// Recv implements socket.Socket. With SO_PASSCRED it adds a message with the sender's credentials, and with SO_PASSPIDFD a message
// with its process.
func (s *Socket) Recv(b []byte, flags int) (socket.Received, linux.Errno) {
	in, _ := s.boxes()
	if in == nil {
		return socket.Received{}, linux.EINVAL
	}
	peek := flags&linux.MSG_PEEK != 0
	passes, passesProcess := s.passes()
	var r socket.Received
	var errno linux.Errno
	if s.stream() {
		if len(b) == 0 {
			return r, 0
		}
		r, errno = in.TakeStream(b, peek, passes || passesProcess)
	} else {
		r, errno = in.TakeMessage(b, peek)
	}
	if r.N < r.Len {
		r.Flags |= linux.MSG_TRUNC
	}
	if passes && errno == 0 && (s.stream() || r.Sender != socket.Credentials{}) { // the end of a stream has one too
		c := socket.Control{Level: linux.SOL_SOCKET, Type: linux.SCM_CREDENTIALS, Data: r.Sender.Value()}
		r.Control = append([]socket.Control{c}, r.Control...) // as on Linux, it is the first
	}
	if p := r.Sender.Process; passesProcess && errno == 0 && p != nil { // as on Linux, it is the last
		r.Control = append(slices.Clip(r.Control), socket.Control{Level: linux.SOL_SOCKET, Type: linux.SCM_PIDFD, Process: p})
	}
	return r, errno
}

// passes returns the values of SO_PASSCRED and SO_PASSPIDFD.
func (s *Socket) passes() (credentials, process bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.PassCred, s.PassPIDFD
}

// PeerProcess returns the process of SO_PEERPIDFD, or nil.
func (s *Socket) PeerProcess() file.Watched {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.peerCreds.Process
}

// Send implements socket.Socket. Once the receiver's mailbox accepts a message, it owns the passed
// descriptors.
func (s *Socket) Send(b []byte, m socket.Outgoing) (int, linux.Errno) {
	if s.Type == linux.SOCK_SEQPACKET {
		m.To = socket.Address{} // Linux ignores it
	}
	s.Mu.Lock()
	out, limit, shut, from := s.outbox, s.sendLimit, s.shutWrite, s.name
	needsName := (s.PassCred || s.PassPIDFD) && from == "" && !s.stream() && (m.To.Family == linux.AF_UNSPEC || m.To.Name != "")
	s.Mu.Unlock()
	switch {
	case shut:
		return 0, linux.EPIPE
	case m.To.Family == linux.AF_UNSPEC && out == nil:
		return 0, linux.ENOTCONN
	}
	if needsName {
		if errno := s.nameForCredentials(); errno != 0 {
			return 0, errno
		}
		from = s.Local().Name
	}
	if m.To.Family != linux.AF_UNSPEC {
		var errno linux.Errno
		if out, errno = s.destination(m.By, m.To); errno != 0 {
			return 0, errno
		}
	}
	if s.stream() && len(b) == 0 {
		return 0, 0
	}
	l := socket.Message{Data: b, Sender: m.Sender}
	if s.Type == linux.SOCK_DGRAM && from != "" { // the message of a socket without a name has no sender address
		l.From = s.unixAddress(from)
	}
	for _, c := range m.Control {
		if len(c.Passed) > 0 {
			l.Control = append(l.Control, c)
		}
	}
	n, errno := out.Put(l, limit, s.stream(), &s.Waiters)
	if errno == linux.EPIPE && s.Type == linux.SOCK_DGRAM {
		errno = linux.ECONNREFUSED
	}
	if errno == 0 {
		for i := range m.Control {
			m.Control[i].Passed = nil // the receiver now owns the descriptions
		}
	}
	return n, errno
}

// destination returns the mailbox of the socket to which a datagram is addressed.
func (s *Socket) destination(by socket.Caller, a socket.Address) (*socket.Mailbox, linux.Errno) {
	if s.Type != linux.SOCK_DGRAM {
		if in, _ := s.boxes(); in != nil {
			return nil, linux.EISCONN
		}
		return nil, linux.EOPNOTSUPP
	}
	if a.Family != linux.AF_UNIX {
		return nil, linux.EINVAL
	}
	to, errno := s.names.find(by, a.Name)
	switch {
	case errno != 0:
		return nil, errno
	case to.Type != linux.SOCK_DGRAM:
		return nil, linux.EPROTOTYPE
	}
	return to.inbox, 0
}

func (s *Socket) TakeError() linux.Errno {
	in, _ := s.boxes()
	if in == nil {
		return 0
	}
	return in.TakeFailure()
}

func (s *Socket) Option(level, name int) ([]byte, linux.Errno) {
	if level != linux.SOL_SOCKET {
		return nil, linux.EOPNOTSUPP
	}
	s.Mu.Lock()
	send, recv, listening, creds := s.sendLimit, s.recvLimit, s.listening, s.peerCreds
	s.Mu.Unlock()
	switch name {
	case linux.SO_SNDBUF:
		return socket.IntValue(send), 0
	case linux.SO_RCVBUF:
		return socket.IntValue(recv), 0
	case linux.SO_ACCEPTCONN:
		return socket.BoolValue(listening), 0
	case linux.SO_PEERCRED:
		return creds.Value(), 0
	case linux.SO_REUSEADDR, linux.SO_REUSEPORT, linux.SO_KEEPALIVE, linux.SO_BROADCAST:
		n, _ := s.Remembers(socket.OptionName{Level: level, Name: name})
		return socket.BoolValue(n != 0), 0
	}
	return s.Base.Option(name)
}

func (s *Socket) SetOption(level, name int, value []byte) linux.Errno {
	if level != linux.SOL_SOCKET {
		return linux.EOPNOTSUPP
	}
	switch name {
	case linux.SO_SNDBUF, linux.SO_RCVBUF, linux.SO_SNDBUFFORCE, linux.SO_RCVBUFFORCE:
		n, errno := socket.ParseInt(value)
		if errno != 0 {
			return errno
		}
		s.Mu.Lock()
		defer s.Mu.Unlock()
		n = bufferSize(n)
		if name == linux.SO_SNDBUF || name == linux.SO_SNDBUFFORCE {
			s.sendLimit = n
		} else {
			s.recvLimit = n
		}
		return 0
	case linux.SO_REUSEADDR, linux.SO_REUSEPORT, linux.SO_KEEPALIVE, linux.SO_BROADCAST:
		return s.Remember(socket.OptionName{Level: level, Name: name}, value) // no effect: names are not reused
	}
	return s.Base.SetOption(name, value)
}

// bufferSize returns the size set by SO_SNDBUF and SO_RCVBUF: twice the given value, within limits
// (socket(7)).
func bufferSize(n int) int {
	return max(4608, min(2*n, maxBuffer))
}

// Diagnosis is the state of a socket that sock_diag(7) reports.
type Diagnosis struct {
	Name             string  // bound name
	Peer             *Socket // the socket at the other end; nil: not connected
	Listening        bool
	Waiting, Backlog int // of a listener: the number of connections that wait for accept(2), and the argument of listen(2)
}

// Diagnose returns the state of the socket.
func (s *Socket) Diagnose() Diagnosis {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return Diagnosis{s.name, s.other, s.listening, len(s.pending), s.backlog}
}

func (s *Socket) Buffered() int {
	if in, _ := s.boxes(); in != nil {
		return in.Waiting(s.stream())
	}
	return 0
}

// Held implements file.Holder. A message on a connection counts for the sender, so that a user cannot make the process of another
// user large. After the sender has closed, it counts for a reader of the same user. Datagrams count for the reader.
func (s *Socket) Held() (n int64) {
	s.Mu.Lock()
	in, out, connection, own := s.inbox, s.outbox, s.Type != linux.SOCK_DGRAM, uint32(s.peerCreds.UID) == s.owner
	s.Mu.Unlock()
	if connection && out != nil {
		n = out.Held()
	}
	if in != nil {
		if _, ended, _, _ := in.State(); !connection || ended && own {
			n += in.Held()
		}
	}
	return n
}

// AtMark implements socket.Marked. Unix sockets send no urgent data.
func (s *Socket) AtMark() (int, linux.Errno) {
	if !s.stream() {
		return 0, linux.EOPNOTSUPP
	}
	return 0, 0
}

func (s *Socket) Unsent() int {
	if _, out := s.boxes(); out != nil {
		return out.Queued()
	}
	return 0
}
