package netlink

import (
	"encoding/binary"
	"syscall"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
)

// Socket is an AF_NETLINK socket (netlink(7)). It supports NETLINK_ROUTE, with which a program reads interfaces, addresses and
// routes (net.Interfaces does), and NETLINK_SOCK_DIAG, with which it lists sockets (ss does). Requests for changes fail with
// EPERM, and multicast groups receive no notifications. The answer is queued before the send of the
// request returns.
type Socket struct {
	socket.Base
	net    *stack.Stack // nil: the system has no interfaces
	serial *file.Serial // allocates port numbers
	pid    int32        // ID of the process that created the socket
	diag   Diag
	inbox  socket.Mailbox
	// Guarded by mu.
	port   uint32 // netlink port (nl_pid) of the socket; 0: not bound yet
	strict bool   // NETLINK_GET_STRICT_CHK: dump requests are filters
}

// isStrict reports whether dump requests are filters.
func (s *Socket) isStrict() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.strict
}

// Diag answers a request of sock_diag(7) for a list: emit gets the body of each message. If errno is set, the request is refused
// and the reply has no list. end is an error that the message at the end of the list reports.
type Diag func(request []byte, emit func(body []byte)) (end, errno linux.Errno)

// New returns a socket. diag answers the requests of a socket of NETLINK_SOCK_DIAG.
func New(net *stack.Stack, serial *file.Serial, pid int32, typ, protocol int, diag Diag) (socket.Socket, linux.Errno) {
	switch {
	case typ != linux.SOCK_RAW && typ != linux.SOCK_DGRAM:
		return nil, linux.ESOCKTNOSUPPORT
	case protocol != linux.NETLINK_ROUTE && protocol != linux.NETLINK_SOCK_DIAG:
		return nil, linux.EPROTONOSUPPORT
	}
	s := &Socket{Base: socket.Base{Domain: linux.AF_NETLINK, Type: typ, Protocol: protocol}, net: net, serial: serial, pid: pid, diag: diag}
	s.inbox.Reader = &s.Waiters
	return s, 0
}

// maxNetlinkBuffer limits the bytes of unread answers; beyond it send fails with ENOBUFS.
const maxNetlinkBuffer = 1 << 20

func (s *Socket) Events() file.Events {
	e := file.PollOut | file.PollBand
	if readable, _, _, _ := s.inbox.State(); readable {
		e |= file.PollIn
	}
	return e
}

// Bind binds the socket to a port; for port 0 it chooses an unused one.
func (s *Socket) Bind(_ socket.Caller, a socket.Address) linux.Errno {
	if a.Family != linux.AF_NETLINK {
		return linux.EINVAL
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.port != 0 {
		return linux.EINVAL
	}
	if s.port = a.Port; s.port == 0 {
		s.port = uint32(s.pid)<<8 + s.serial.Next()
	}
	return 0
}

func (s *Socket) Local() socket.Address {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return socket.Address{Family: linux.AF_NETLINK, Port: s.port}
}

func (s *Socket) Listen(socket.Caller, int) linux.Errno { return linux.EOPNOTSUPP }
func (s *Socket) Accept() (socket.Socket, linux.Errno)  { return nil, linux.EOPNOTSUPP }
func (s *Socket) Shutdown(int) linux.Errno              { return linux.EOPNOTSUPP }
func (s *Socket) TakeError() linux.Errno                { return 0 }
func (s *Socket) Close()                                { s.inbox.Refuse() } // its messages carry no descriptors
func (s *Socket) Buffered() int                         { return s.inbox.Waiting(false) }
func (s *Socket) Unsent() int                           { return 0 }

func (s *Socket) Connect(_ socket.Caller, a socket.Address) linux.Errno {
	if a.Family != linux.AF_NETLINK {
		return linux.EINVAL
	}
	return 0 // the kernel, port 0, is the only possible peer
}

func (s *Socket) Peer() (socket.Address, linux.Errno) {
	return socket.Address{Family: linux.AF_NETLINK}, 0
}

func (s *Socket) Read(b []byte) (int, linux.Errno) {
	r, errno := s.Recv(b, 0)
	return r.N, errno
}

func (s *Socket) Recv(b []byte, flags int) (socket.Received, linux.Errno) {
	r, errno := s.inbox.TakeMessage(b, flags&linux.MSG_PEEK != 0)
	if r.N < r.Len {
		r.Flags |= linux.MSG_TRUNC
	}
	return r, errno
}

func (s *Socket) Write(b []byte) (int, linux.Errno) { return s.Send(b, socket.Outgoing{}) }

// Send processes the requests in b. A rest that is no message is ignored, as on Linux.
func (s *Socket) Send(b []byte, _ socket.Outgoing) (int, linux.Errno) {
	if s.Local().Port == 0 {
		s.Bind(nil, socket.Address{Family: linux.AF_NETLINK})
	}
	for rest := b; len(rest) >= linux.NLMSG_HDRLEN; {
		h := syscall.NlMsghdr{
			Len: binary.NativeEndian.Uint32(rest), Type: binary.NativeEndian.Uint16(rest[4:]),
			Flags: binary.NativeEndian.Uint16(rest[6:]), Seq: binary.NativeEndian.Uint32(rest[8:]),
		}
		if int(h.Len) < linux.NLMSG_HDRLEN || int(h.Len) > len(rest) {
			break
		}
		for _, message := range s.serve(h, rest[linux.NLMSG_HDRLEN:h.Len]) {
			l := socket.Message{Data: message, From: socket.Address{Family: linux.AF_NETLINK}}
			if _, errno := s.inbox.Put(l, maxNetlinkBuffer, false, &s.Waiters); errno != 0 {
				return 0, linux.ENOBUFS
			}
		}
		rest = rest[min((int(h.Len)+3)&^3, len(rest)):]
	}
	return len(b), 0
}

// Deliver queues a message from the kernel. The message is dropped if the socket has no room.
func (s *Socket) Deliver(message []byte) {
	l := socket.Message{Data: message, From: socket.Address{Family: linux.AF_NETLINK}}
	s.inbox.Put(l, maxNetlinkBuffer, false, &s.Waiters)
}

// serve replies to one request with datagrams.
func (s *Socket) serve(h syscall.NlMsghdr, body []byte) [][]byte {
	r := reply{seq: h.Seq, port: s.Local().Port}
	dump := h.Flags&linux.NLM_F_DUMP == linux.NLM_F_DUMP
	switch {
	case s.Protocol == linux.NETLINK_SOCK_DIAG:
		return s.serveDiag(r, h, body)
	case h.Type == linux.RTM_GETLINK:
		describeLinks(s.net, &r, body, dump)
	case h.Type == linux.RTM_GETADDR && dump:
		describeAddresses(s.net, &r, body, s.isStrict())
	case h.Type == linux.RTM_GETROUTE && dump:
		describeRoutes(s.net, &r, body)
	case h.Type == linux.RTM_GETROUTE:
		if errno := describeRouteTo(s.net, &r, body); errno != 0 {
			r.fail(errno, h)
			return r.datagrams
		}
	case h.Type == linux.RTM_GETNEIGH && dump:
		describeNeighbours(s.net, &r, body)
	case h.Type == linux.RTM_GETRULE && dump:
		r.finish(describeRules(&r, body))
		return r.datagrams
	case h.Type == linux.RTM_GETQDISC && dump: // frames are not queued between the stack and a device
	case h.Type < linux.RTM_BASE:
		return nil // nothing is done for control messages, such as NLMSG_NOOP
	case dump || h.Type&3 == 2: // a GET request of a type that is not supported
		r.fail(linux.EOPNOTSUPP, h)
		return r.datagrams
	default:
		r.fail(linux.EPERM, h)
		return r.datagrams
	}
	if dump {
		r.done()
	} else if h.Flags&linux.NLM_F_ACK != 0 {
		r.fail(0, h)
	}
	return r.datagrams
}

// serveDiag replies to a request of sock_diag(7).
func (s *Socket) serveDiag(r reply, h syscall.NlMsghdr, body []byte) [][]byte {
	end, errno := linux.Errno(0), linux.EINVAL
	switch {
	case h.Type < linux.RTM_BASE:
		return nil // a control message
	case h.Type == linux.SOCK_DIAG_BY_FAMILY && h.Flags&linux.NLM_F_DUMP != linux.NLM_F_DUMP:
		errno = linux.EOPNOTSUPP // a request for one socket
	case h.Type == linux.SOCK_DIAG_BY_FAMILY:
		r.multi = true
		end, errno = s.diag(body, func(answer []byte) {
			b, end := r.message(linux.SOCK_DIAG_BY_FAMILY)
			*b = append(*b, answer...)
			end()
		})
	}
	if errno != 0 {
		r.datagrams, r.multi = nil, false
		r.fail(errno, h)
		return r.datagrams
	}
	r.finish(end)
	return r.datagrams
}

// reply collects the messages of a reply into datagrams.
type reply struct {
	seq, port uint32 // sequence number and port that each message of the reply contains
	multi     bool   // the reply has several messages, each with NLM_F_MULTI
	datagrams [][]byte
}

// maxDatagram is the maximum size of a datagram in bytes. Programs read with a buffer of one page.
const maxDatagram = 4000

// message begins a message and returns the function that ends it. Between the two, the caller appends
// the message body to *body.
func (r *reply) message(typ uint16) (body *[]byte, end func()) {
	if n := len(r.datagrams); n == 0 || len(r.datagrams[n-1]) > maxDatagram/2 {
		r.datagrams = append(r.datagrams, nil)
	}
	b := &r.datagrams[len(r.datagrams)-1]
	start := len(*b)
	var flags uint16
	if r.multi {
		flags = linux.NLM_F_MULTI
	}
	*b = binary.NativeEndian.AppendUint32(*b, 0)
	*b = binary.NativeEndian.AppendUint16(*b, typ)
	*b = binary.NativeEndian.AppendUint16(*b, flags)
	*b = binary.NativeEndian.AppendUint32(*b, r.seq)
	*b = binary.NativeEndian.AppendUint32(*b, r.port)
	return b, func() {
		binary.NativeEndian.PutUint32((*b)[start:], uint32(len(*b)-start))
		*b = append(*b, make([]byte, -len(*b)&3)...)
	}
}

// done appends NLMSG_DONE, which ends a reply of several messages.
func (r *reply) done() { r.finish(0) }

// finish appends NLMSG_DONE with an error.
func (r *reply) finish(errno linux.Errno) {
	r.multi = true
	b, end := r.message(linux.NLMSG_DONE)
	*b = binary.NativeEndian.AppendUint32(*b, uint32(-int32(errno)))
	end()
}

// fail appends an NLMSG_ERROR; errno 0 is an acknowledgement.
func (r *reply) fail(errno linux.Errno, h syscall.NlMsghdr) {
	b, end := r.message(linux.NLMSG_ERROR)
	*b = binary.NativeEndian.AppendUint32(*b, uint32(-int32(errno)))
	*b = binary.NativeEndian.AppendUint32(*b, h.Len)
	*b = binary.NativeEndian.AppendUint16(*b, h.Type)
	*b = binary.NativeEndian.AppendUint16(*b, h.Flags)
	*b = binary.NativeEndian.AppendUint32(*b, h.Seq)
	*b = binary.NativeEndian.AppendUint32(*b, h.Pid)
	end()
}

// Attribute appends a struct rtattr.
func Attribute(b *[]byte, typ uint16, value []byte) {
	*b = binary.NativeEndian.AppendUint16(*b, uint16(4+len(value)))
	*b = binary.NativeEndian.AppendUint16(*b, typ)
	*b = append(*b, value...)
	*b = append(*b, make([]byte, -len(*b)&3)...)
}

func (s *Socket) Option(level, name int) ([]byte, linux.Errno) {
	switch {
	case level != linux.SOL_SOCKET:
		return nil, linux.ENOPROTOOPT
	case name == linux.SO_RCVBUF || name == linux.SO_SNDBUF:
		return socket.IntValue(maxNetlinkBuffer), 0
	}
	return s.Base.Option(name)
}

// SetOption implements setsockopt(2). It accepts NETLINK_ADD_MEMBERSHIP and similar options, which have no effect: groups
// never receive a message.
func (s *Socket) SetOption(level, name int, value []byte) linux.Errno {
	const solNetlink = 270
	switch {
	case level == solNetlink && name == linux.NETLINK_GET_STRICT_CHK && len(value) >= 4:
		s.Mu.Lock()
		s.strict = binary.NativeEndian.Uint32(value) != 0
		s.Mu.Unlock()
		return 0
	case level == solNetlink:
		return 0
	case level != linux.SOL_SOCKET:
		return linux.ENOPROTOOPT
	case name == linux.SO_RCVBUF || name == linux.SO_SNDBUF || name == linux.SO_RCVBUFFORCE || name == linux.SO_SNDBUFFORCE:
		return 0
	}
	return s.Base.SetOption(name, value)
}
