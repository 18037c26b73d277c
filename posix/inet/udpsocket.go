package inet

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
)

// UDPSocket is a UDP socket (udp(7)), and the base of the other datagram sockets. It opens a socket of
// the stack when it is bound: by bind, or to a port chosen by the stack on the first send or connect.
type UDPSocket struct {
	Base
	net  *stack.Stack
	open func(netip.AddrPort, stack.UDPOptions) (datagramConn, error) // opens the socket of the stack
	conn atomic.Pointer[datagramBox]                                  // stored once, with mu held

	cork cork // MSG_MORE and UDP_CORK

	// Guarded by mu.
	opts     stack.UDPOptions // used until conn is set; Groups is always used, and may be read without mu
	shutRead bool             // shut down for reading (shutdown(2))
	shutSend bool             // shut down for writing (shutdown(2))
	wants    WantedControl
	filter   stack.Filter // SO_ATTACH_FILTER; nil: none
	segment  int          // UDP_SEGMENT: length of the datagrams into which a send is split; 0: not split

	groupsBy   groupInterface // IP_MULTICAST_IF
	groupIndex int            // IPV6_MULTICAST_IF: interface index
	groupZone  string         // name of the interface with index groupIndex
}

// datagramConn is a socket of the stack: stack.UDPConn, stack.Pinger or stack.RawConn.
type datagramConn interface {
	Connect(netip.AddrPort) error
	LocalAddrPort() netip.AddrPort
	RemoteAddrPort() netip.AddrPort
	TryReadFrom([]byte) (int, stack.Datagram, error)
	PeekFrom([]byte) (int, stack.Datagram, error)
	TryWriteBy([]byte, netip.AddrPort, stack.UDPSend) (int, error)
	Waiting() (count, first int)
	Err() error
	TakeError() (stack.DatagramError, bool)
	TakePathMTU() (stack.PathMTU, bool)
	Options() stack.UDPOptions
	SetOptions(func(*stack.UDPOptions)) error
	SetFilter(stack.Filter)
	SetDevice(*stack.Interface)
	Events() stack.Events
	Watch(func(stack.Events))
	Close() error
}

// datagramBox holds a datagramConn, because an atomic.Pointer cannot point to an interface.
type datagramBox struct{ datagramConn }

// WantedControl is the set of control messages that a program has requested for received datagrams.
type WantedControl struct {
	packetInfo, ttl, tos, to                 bool
	packetInfo6, hopLimit, trafficClass, to6 bool
	Time, Nanoseconds                        bool // SO_TIMESTAMP, SO_TIMESTAMPNS, for IPv4 and IPv6
}

func newUDP(n *Network, domain int, owner uint32) *UDPSocket {
	s := &UDPSocket{
		Base: NewBase(domain, linux.SOCK_DGRAM, linux.IPPROTO_UDP),
		net:  n.stack,
	}
	s.opts = s.begin(stack.UDPOptions{Owner: owner})
	s.open = func(local netip.AddrPort, o stack.UDPOptions) (datagramConn, error) { return s.net.ListenUDP(local, o) }
	return s
}

// begin adds the initial options of every datagram socket to o. As on Linux, the socket also receives datagrams to groups
// that only other sockets have joined. An AF_INET6 socket does not receive such datagrams for IPv4 groups.
func (s *UDPSocket) begin(o stack.UDPOptions) stack.UDPOptions {
	o.Groups, o.AllGroups, o.AllGroups6 = s.net.NewMemberships(), !s.IsInet6(), true
	return o
}

// bindTo binds the socket unless it is bound. The caller holds mu.
func (s *UDPSocket) bindTo(local netip.AddrPort) (*datagramBox, linux.Errno) {
	if c := s.conn.Load(); c != nil {
		return c, 0
	}
	made, err := s.open(local, s.opts)
	if err != nil {
		return nil, file.ToErrno(err)
	}
	c := &datagramBox{made}
	c.SetFilter(s.filter)
	s.conn.Store(c)
	c.Watch(s.Relay)
	return c, 0
}

// bound returns the stack's socket, and opens it if necessary.
func (s *UDPSocket) bound() (*datagramBox, linux.Errno) {
	if c := s.conn.Load(); c != nil {
		return c, 0
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.bindTo(s.any())
}

func (s *UDPSocket) Events() file.Events {
	e := file.PollOut | file.PollBand
	if c := s.conn.Load(); c != nil {
		e = socket.DatagramEvents(c.Events())
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.shutRead {
		e |= file.PollIn | file.PollRdHup
		if s.shutSend {
			e |= file.PollHup
		}
	}
	return e
}

func (s *UDPSocket) Bind(_ socket.Caller, a socket.Address) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	local, errno := s.bindName(a, s.opts.V6Only)
	if errno != 0 {
		return errno
	}
	if s.conn.Load() != nil {
		return linux.EINVAL
	}
	_, errno = s.bindTo(local)
	return errno
}

func (s *UDPSocket) Listen(socket.Caller, int) linux.Errno { return linux.EOPNOTSUPP }
func (s *UDPSocket) Accept() (socket.Socket, linux.Errno)  { return nil, linux.EOPNOTSUPP }

// Connect sets the peer. AF_UNSPEC removes it.
func (s *UDPSocket) Connect(_ socket.Caller, a socket.Address) linux.Errno {
	if a.Family == linux.AF_UNSPEC {
		if c := s.conn.Load(); c != nil {
			return file.ToErrno(c.Connect(netip.AddrPort{}))
		}
		return 0
	}
	remote, errno := s.inetName(a)
	if errno != 0 {
		return errno
	}
	c, errno := s.bound()
	if errno != 0 {
		return errno
	}
	errno = file.ToErrno(c.Connect(remote))
	if errno == 0 {
		s.redirectCorked(c.RemoteAddrPort())
	}
	return errno
}

// Shutdown implements shutdown(2). As on Linux, it has an effect on a socket without a peer, but returns ENOTCONN.
func (s *UDPSocket) Shutdown(how int) linux.Errno {
	s.Mu.Lock()
	s.shutRead = s.shutRead || how != linux.SHUT_WR
	s.shutSend = s.shutSend || how != linux.SHUT_RD
	s.Mu.Unlock()
	s.Waiters.Notify(file.PollIn | file.PollOut | file.PollRdHup | file.PollHup)
	if _, errno := s.Peer(); errno != 0 {
		return errno
	}
	return 0
}

func (s *UDPSocket) Close() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c := s.conn.Load(); c != nil {
		c.Close()
		return
	}
	s.opts.Groups.Close()
}

func (s *UDPSocket) Local() socket.Address {
	if c := s.conn.Load(); c != nil {
		return s.inet(s.net, c.LocalAddrPort())
	}
	return s.inet(s.net, s.any())
}

func (s *UDPSocket) Peer() (socket.Address, linux.Errno) {
	if p := s.remote(); p.IsValid() {
		return s.inet(s.net, p), 0
	}
	return socket.Address{}, linux.ENOTCONN
}

// remote returns the peer of a connected socket, or the zero AddrPort.
func (s *UDPSocket) remote() netip.AddrPort {
	if c := s.conn.Load(); c != nil {
		return c.RemoteAddrPort()
	}
	return netip.AddrPort{}
}

func (s *UDPSocket) Read(b []byte) (int, linux.Errno) {
	r, errno := s.receive(b, 0)
	return r.N, errno
}

func (s *UDPSocket) Write(b []byte) (int, linux.Errno) { return s.Send(b, socket.Outgoing{}) }

func (s *UDPSocket) Recv(b []byte, flags int) (socket.Received, linux.Errno) {
	return s.receive(b, flags)
}

// receive receives one datagram. After a shutdown for reading, it returns 0 bytes instead of EAGAIN.
func (s *UDPSocket) receive(b []byte, flags int) (socket.Received, linux.Errno) {
	c := s.conn.Load()
	s.Mu.Lock()
	shut, wants := s.shutRead, s.wants
	s.Mu.Unlock()
	if c == nil {
		if shut {
			return socket.Received{}, 0
		}
		return socket.Received{}, linux.EAGAIN
	}
	if r, ok := s.recvPathMTU(c); ok {
		return r, 0
	}
	take := c.TryReadFrom
	if flags&linux.MSG_PEEK != 0 {
		take = c.PeekFrom
	}
	n, d, err := take(b)
	if err == stack.ErrWouldBlock && shut {
		return socket.Received{}, 0
	}
	if err != nil {
		return socket.Received{}, file.ToErrno(err)
	}
	r := socket.Received{N: n, Len: d.Len, From: s.inet(s.net, d.From)}
	if n < d.Len {
		r.Flags |= linux.MSG_TRUNC
	}
	if wants != (WantedControl{}) {
		r.Control = wants.messages(s.net, d)
	}
	return r, 0
}

// messages returns the control messages that IP_PKTINFO, IP_RECVTTL, IP_RECVTOS, IP_RECVORIGDSTADDR
// (ip(7)) and their IPv6 counterparts request.
func (w WantedControl) messages(net *stack.Stack, d stack.Datagram) []socket.Control {
	list := append(w.timestamp(net, &d), w.messages6(net, d)...)
	if d.To.Addr().Is6() {
		return list
	}
	if w.packetInfo { // struct in_pktinfo: index, local address, destination
		to := d.To.Addr().As4()
		data := binary.NativeEndian.AppendUint32(nil, uint32(d.Interface))
		data = append(append(data, to[:]...), to[:]...)
		list = append(list, socket.Control{Level: linux.IPPROTO_IP, Type: linux.IP_PKTINFO, Data: data})
	}
	if w.ttl {
		list = append(list, socket.Control{Level: linux.IPPROTO_IP, Type: linux.IP_TTL, Data: socket.IntValue(int(d.TTL))})
	}
	if w.tos {
		list = append(list, socket.Control{Level: linux.IPPROTO_IP, Type: linux.IP_TOS, Data: []byte{d.TOS}})
	}
	if w.to {
		list = append(list, socket.Control{Level: linux.IPPROTO_IP, Type: linux.IP_ORIGDSTADDR, Data: socket.Inet(d.To).Append(nil)})
	}
	return list
}

// timestamp returns the arrival time (socket(7)) as a struct timeval or timespec.
func (w WantedControl) timestamp(net *stack.Stack, d *stack.Datagram) []socket.Control {
	if !w.Time && !w.Nanoseconds {
		return nil
	}
	return w.TimeMessage(net.Arrived(d))
}

func (w WantedControl) TimeMessage(t time.Time) []socket.Control {
	kind, fraction := linux.SO_TIMESTAMP, t.Nanosecond()/1000
	if w.Nanoseconds {
		kind, fraction = linux.SO_TIMESTAMPNS, t.Nanosecond()
	}
	data := binary.NativeEndian.AppendUint64(nil, uint64(t.Unix()))
	data = binary.NativeEndian.AppendUint64(data, uint64(fraction))
	return []socket.Control{{Level: linux.SOL_SOCKET, Type: kind, Data: data}}
}

// Send sends one datagram, or several with UDP_SEGMENT. It binds the socket if necessary. With MSG_MORE or UDP_CORK, it holds
// the datagram back.
func (s *UDPSocket) Send(b []byte, m socket.Outgoing) (int, linux.Errno) {
	n, errno, done := s.sendCorked(b, m)
	if done {
		return n, errno
	}
	d, errno := s.prepare(m)
	if errno != 0 {
		return 0, errno
	}
	n, err := s.conn.Load().TryWriteBy(b, d.to, d.by)
	return n, file.ToErrno(err)
}

// prepare returns the destination and the options of a datagram without data. It binds the socket if necessary.
func (s *UDPSocket) prepare(m socket.Outgoing) (d corkedDatagram, errno linux.Errno) {
	if m.To.Family != linux.AF_UNSPEC {
		if d.to, errno = s.sendName(m.To); errno != 0 {
			return d, errno
		}
	}
	if d.by, errno = s.sendBy(m.Control); errno != 0 {
		return d, errno
	}
	s.Mu.Lock()
	shut := s.shutSend
	if d.by.Segment == 0 {
		d.by.Segment = s.segment
	}
	groupsBy := s.groupsBy
	if d.by.On == nil {
		d.to = s.toGroup(d.to)
	}
	s.Mu.Unlock()
	if shut {
		return d, linux.EPIPE
	}
	c, errno := s.bound()
	if errno == 0 {
		groupsBy.apply(&d.by, c, d.to)
	}
	return d, errno
}

// sendName returns the destination that a program has passed to a send call. As on Linux, a UDP socket of AF_INET6 also
// accepts an AF_INET address.
func (s *UDPSocket) sendName(a socket.Address) (netip.AddrPort, linux.Errno) {
	if s.hasPorts() && s.IsInet6() && a.Family == linux.AF_INET {
		return a.IP, 0
	}
	return s.inetName(a)
}

// isUDP reports whether this is a UDP socket, rather than a UDP-Lite, ping or raw socket.
func (s *UDPSocket) isUDP() bool {
	return s.Protocol == linux.IPPROTO_UDP && s.Type == linux.SOCK_DGRAM
}

// hasPorts reports whether this is a UDP or UDP-Lite socket.
func (s *UDPSocket) hasPorts() bool {
	return s.isUDP() || s.Protocol == linux.IPPROTO_UDPLITE && s.Type == linux.SOCK_DGRAM
}

func (s *UDPSocket) TakeError() linux.Errno {
	if c := s.conn.Load(); c != nil {
		return file.ToErrno(c.Err())
	}
	return 0
}

// Buffered returns the size of the first datagram in the receive queue, in bytes.
func (s *UDPSocket) Buffered() int {
	if c := s.conn.Load(); c != nil {
		_, first := c.Waiting()
		return first
	}
	return 0
}

func (s *UDPSocket) Unsent() int { return 0 }

// setOptions changes the options of this socket and of the socket of the stack.
func (s *UDPSocket) setOptions(f func(*stack.UDPOptions)) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	f(&s.opts)
	if c := s.conn.Load(); c != nil {
		return file.ToErrno(c.SetOptions(f))
	}
	return 0
}

func (s *UDPSocket) options() stack.UDPOptions {
	if c := s.conn.Load(); c != nil {
		return c.Options()
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.opts
}
