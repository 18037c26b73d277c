package posix

import (
	"encoding/binary"
	"syscall"
)

// netlinkSocket is a socket of AF_NETLINK (netlink(7)): of its protocols,
// NETLINK_ROUTE, with which a program reads interfaces, addresses and routes
// (net.Interfaces does). Nothing can be changed through it; nothing is announced
// to multicast groups. The answer is there before the request's send returns.
type netlinkSocket struct {
	socketBase
	p     *Process
	inbox mailbox
	// Guarded by mu.
	port uint32 // 0: not bound yet
}

func (p *Process) newNetlink(typ, protocol int) (socket, Errno) {
	switch {
	case typ != syscall.SOCK_RAW && typ != syscall.SOCK_DGRAM:
		return nil, syscall.ESOCKTNOSUPPORT
	case protocol != syscall.NETLINK_ROUTE:
		return nil, syscall.EPROTONOSUPPORT
	}
	s := &netlinkSocket{socketBase: socketBase{domain: syscall.AF_NETLINK, typ: typ, pro: protocol}, p: p}
	s.inbox.reader = &s.q
	return s, 0
}

// maxNetlinkBuffer bounds the answers that wait to be read; more is ENOBUFS.
const maxNetlinkBuffer = 1 << 20

func (s *netlinkSocket) events() Events {
	e := PollOut
	if readable, _, _, _ := s.inbox.state(); readable {
		e |= PollIn
	}
	return e
}

// bind takes a port; 0 means the process's, or one of its own if that is taken.
func (s *netlinkSocket) bind(a Address) Errno {
	if a.Family != syscall.AF_NETLINK {
		return syscall.EINVAL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.port != 0 {
		return syscall.EINVAL
	}
	if s.port = a.Port; s.port == 0 {
		s.port = uint32(s.p.options.Credentials.PID)<<8 + s.p.serial.next()
	}
	return 0
}

func (s *netlinkSocket) local() Address {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Address{Family: syscall.AF_NETLINK, Port: s.port}
}

func (s *netlinkSocket) listen(int) Errno        { return syscall.EOPNOTSUPP }
func (s *netlinkSocket) accept() (socket, Errno) { return nil, syscall.EOPNOTSUPP }
func (s *netlinkSocket) shutdown(int) Errno      { return syscall.EOPNOTSUPP }
func (s *netlinkSocket) takeError() Errno        { return 0 }
func (s *netlinkSocket) close()                  { s.inbox.refuse() }
func (s *netlinkSocket) buffered() int           { return s.inbox.waiting(false) }
func (s *netlinkSocket) unsent() int             { return 0 }

func (s *netlinkSocket) connect(a Address) Errno {
	if a.Family != syscall.AF_NETLINK {
		return syscall.EINVAL
	}
	return 0 // there is nobody but the kernel to connect to
}

func (s *netlinkSocket) peer() (Address, Errno) {
	return Address{Family: syscall.AF_NETLINK}, 0
}

func (s *netlinkSocket) read(b []byte) (int, Errno) {
	r, errno := s.recv(b, 0)
	return r.N, errno
}

func (s *netlinkSocket) recv(b []byte, flags int) (Received, Errno) {
	r, errno := s.inbox.takeMessage(b, flags&syscall.MSG_PEEK != 0)
	if r.N < r.Len {
		r.Flags |= syscall.MSG_TRUNC
	}
	return r, errno
}

func (s *netlinkSocket) write(b []byte) (int, Errno) { return s.send(b, Outgoing{}) }

// send serves the requests in b.
func (s *netlinkSocket) send(b []byte, _ Outgoing) (int, Errno) {
	if s.local().Port == 0 {
		s.bind(Address{Family: syscall.AF_NETLINK})
	}
	for rest := b; len(rest) >= syscall.NLMSG_HDRLEN; {
		h := syscall.NlMsghdr{
			Len: binary.NativeEndian.Uint32(rest), Type: binary.NativeEndian.Uint16(rest[4:]),
			Flags: binary.NativeEndian.Uint16(rest[6:]), Seq: binary.NativeEndian.Uint32(rest[8:]),
		}
		if int(h.Len) < syscall.NLMSG_HDRLEN || int(h.Len) > len(rest) {
			return 0, syscall.EINVAL
		}
		for _, message := range s.serve(h, rest[syscall.NLMSG_HDRLEN:h.Len]) {
			l := letter{data: message, from: Address{Family: syscall.AF_NETLINK}}
			if _, errno := s.inbox.put(l, maxNetlinkBuffer, false, &s.q); errno != 0 {
				return 0, syscall.ENOBUFS
			}
		}
		rest = rest[min((int(h.Len)+3)&^3, len(rest)):]
	}
	return len(b), 0
}

// serve answers one request with datagrams.
func (s *netlinkSocket) serve(h syscall.NlMsghdr, body []byte) [][]byte {
	r := reply{seq: h.Seq, port: s.local().Port}
	dump := h.Flags&syscall.NLM_F_DUMP == syscall.NLM_F_DUMP
	switch {
	case h.Type == syscall.RTM_GETLINK:
		s.p.describeLinks(&r, body, dump)
	case h.Type == syscall.RTM_GETADDR && dump:
		s.p.describeAddresses(&r)
	case h.Type == syscall.RTM_GETROUTE && dump:
		s.p.describeRoutes(&r)
	case h.Type == syscall.RTM_GETROUTE:
		if errno := s.p.describeRouteTo(&r, body); errno != 0 {
			r.fail(errno, h)
			return r.datagrams
		}
	case h.Type == syscall.RTM_GETNEIGH && dump:
		s.p.describeNeighbours(&r, body)
	case h.Type == syscall.RTM_GETRULE && dump:
		// none are told
	case h.Type < syscall.RTM_BASE:
		return nil // NOOP and such
	case dump || h.Type&3 == 2: // a GET that is not served
		r.fail(syscall.EOPNOTSUPP, h)
		return r.datagrams
	default:
		r.fail(syscall.EPERM, h)
		return r.datagrams
	}
	if dump {
		r.done()
	} else if h.Flags&syscall.NLM_F_ACK != 0 {
		r.fail(0, h)
	}
	return r.datagrams
}

// reply collects messages into datagrams.
type reply struct {
	seq, port uint32
	multi     bool
	datagrams [][]byte
}

// maxDatagram is how much goes into one datagram: what fits into the buffer of
// one page that programs read with.
const maxDatagram = 4000

// message begins a message and returns the function that ends it. In between,
// the body is appended to the last datagram.
func (r *reply) message(typ uint16) (body *[]byte, end func()) {
	if n := len(r.datagrams); n == 0 || len(r.datagrams[n-1]) > maxDatagram/2 {
		r.datagrams = append(r.datagrams, nil)
	}
	b := &r.datagrams[len(r.datagrams)-1]
	start := len(*b)
	var flags uint16
	if r.multi {
		flags = syscall.NLM_F_MULTI
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

// done ends a dump.
func (r *reply) done() {
	r.multi = true
	b, end := r.message(syscall.NLMSG_DONE)
	*b = binary.NativeEndian.AppendUint32(*b, 0)
	end()
}

// fail is an answer of type NLMSG_ERROR; errno 0 acknowledges.
func (r *reply) fail(errno Errno, h syscall.NlMsghdr) {
	b, end := r.message(syscall.NLMSG_ERROR)
	*b = binary.NativeEndian.AppendUint32(*b, uint32(-int32(errno)))
	*b = binary.NativeEndian.AppendUint32(*b, h.Len)
	*b = binary.NativeEndian.AppendUint16(*b, h.Type)
	*b = binary.NativeEndian.AppendUint16(*b, h.Flags)
	*b = binary.NativeEndian.AppendUint32(*b, h.Seq)
	*b = binary.NativeEndian.AppendUint32(*b, h.Pid)
	end()
}

// attribute appends a struct rtattr.
func attribute(b *[]byte, typ uint16, value []byte) {
	*b = binary.NativeEndian.AppendUint16(*b, uint16(4+len(value)))
	*b = binary.NativeEndian.AppendUint16(*b, typ)
	*b = append(*b, value...)
	*b = append(*b, make([]byte, -len(*b)&3)...)
}

func (s *netlinkSocket) option(level, name int) ([]byte, Errno) {
	switch {
	case level != syscall.SOL_SOCKET:
		return nil, syscall.ENOPROTOOPT
	case name == syscall.SO_RCVBUF || name == syscall.SO_SNDBUF:
		return intValue(maxNetlinkBuffer), 0
	}
	return s.socketBase.option(name)
}

// setOption accepts NETLINK_ADD_MEMBERSHIP and such: groups are quiet.
func (s *netlinkSocket) setOption(level, name int, value []byte) Errno {
	const solNetlink = 270
	switch {
	case level == solNetlink:
		return 0
	case level != syscall.SOL_SOCKET:
		return syscall.ENOPROTOOPT
	case name == syscall.SO_RCVBUF || name == syscall.SO_SNDBUF || name == soRcvBufForce || name == soSndBufForce:
		return 0
	}
	return s.socketBase.setOption(name, value)
}
