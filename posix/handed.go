package posix

import (
	"loam/posix/file"
	"loam/posix/socket"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Connections accepted by the host and handed to the program. Each enters the accept queue of the
// socket that listens at its destination. The host has completed the handshake by then, so the client
// cannot be refused: without a listener the connection is reset, and a full queue delays it.

// handedPatience limits how long a connection waits for room in a full queue. The gateway waits as long
// for connections that it relays.
const handedPatience = 10 * time.Second

// handedPorts holds the listening sockets by port.
type handedPorts struct {
	mu     sync.Mutex
	byPort map[uint16][]*tcpSocket
}

func (h *handedPorts) add(s *tcpSocket, port uint16) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byPort == nil {
		h.byPort = make(map[uint16][]*tcpSocket)
	}
	h.byPort[port] = append(h.byPort[port], s)
}

func (h *handedPorts) remove(s *tcpSocket, port uint16) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.DeleteFunc(h.byPort[port], func(x *tcpSocket) bool { return x == s })
	if len(list) == 0 {
		delete(h.byPort, port)
		return
	}
	h.byPort[port] = list
}

// find returns the socket that listens at an address, or nil. If several do (SO_REUSEPORT), the
// client's port selects one.
func (h *handedPorts) find(at, from netip.AddrPort) *tcpSocket {
	h.mu.Lock()
	defer h.mu.Unlock()
	var exact, wild []*tcpSocket
	for _, s := range h.byPort[at.Port()] {
		l := s.listener.Load()
		switch a := l.LocalAddrPort().Addr(); {
		case a == at.Addr():
			exact = append(exact, s)
		case a.IsUnspecified() && (a.Is4() == at.Addr().Is4() || a.Is6() && !l.Options().V6Only):
			wild = append(wild, s)
		}
	}
	if len(exact) == 0 {
		exact = wild
	}
	if len(exact) == 0 {
		return nil
	}
	return exact[int(from.Port())%len(exact)]
}

// Way is a pair of addresses that a connection of the host may have in the program: from the client
// address From to the local address At.
type Way struct{ At, From netip.AddrPort }

// Hand passes a connection of the host to the program, by the first way that leads to a listening
// socket. With TCP_DEFER_ACCEPT, the socket receives it when data arrives or the time is over. Without
// a listener the connection is reset. Hand takes over c.
func (p *Process) Hand(c HostTCP, ways ...Way) {
	for _, w := range ways {
		if s := p.handed.find(w.At, w.From); s != nil {
			withhold(c, s.options().DeferAccept, func(c HostTCP) { s.offer(handed{c, w}) })
			return
		}
	}
	c.Close(true, true)
}

// offer queues a connection, or resets it if the socket has stopped listening.
func (s *tcpSocket) offer(c handed) {
	if !s.queued.push(c) {
		c.host.Close(true, true)
		return
	}
	s.Waiters.Notify(PollIn)
}

// handed is a connection waiting to be accepted.
type handed struct {
	host HostTCP
	Way
}

// handedQueue is the queue of handed connections of a listening socket.
type handedQueue struct {
	mu      sync.Mutex // guards the fields below
	open    bool
	backlog int
	list    []handed
}

// maxBacklog is net.core.somaxconn.
const maxBacklog = 4096

// begin opens the queue when the socket starts to listen.
func (q *handedQueue) begin(backlog int) {
	if backlog < 0 || backlog > maxBacklog {
		backlog = maxBacklog
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open, q.backlog = true, max(backlog, 1)
}

// push appends a connection. It returns false if the socket no longer listens. A connection beyond the
// backlog is reset if it does not get room within handedPatience.
func (q *handedQueue) push(c handed) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open {
		return false
	}
	if q.list = append(q.list, c); len(q.list) > q.backlog {
		time.AfterFunc(handedPatience, func() { q.giveUp(c) })
	}
	return true
}

// giveUp resets a connection that is still beyond the backlog.
func (q *handedQueue) giveUp(c handed) {
	q.mu.Lock()
	i := slices.Index(q.list, c)
	late := i >= q.backlog
	if late {
		q.list = slices.Delete(q.list, i, i+1)
	}
	q.mu.Unlock()
	if late {
		c.host.Close(true, true)
	}
}

// pop removes and returns the oldest connection.
func (q *handedQueue) pop() (c handed, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return c, false
	}
	c = q.list[0]
	q.list = slices.Delete(q.list, 0, 1)
	return c, true
}

func (q *handedQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list)
}

// end closes the queue when the socket stops listening. It resets the waiting connections.
func (q *handedQueue) end() {
	q.mu.Lock()
	list := q.list
	q.open, q.list = false, nil
	q.mu.Unlock()
	for _, c := range list {
		c.host.Close(true, false)
	}
}

// acceptHanded accepts a connection of the host. The connection inherits the options set on the
// listening socket.
func (s *tcpSocket) acceptHanded() (*hostTCP, bool) {
	c, ok := s.queued.pop()
	if !ok {
		return nil, false
	}
	h := s.newHostTCP(c.host, s.inet(s.net, c.At), s.inet(s.net, c.From))
	s.Mu.Lock()
	h.inherited = s.given
	s.Mu.Unlock()
	for _, o := range h.inherited {
		if hostOptions[o.OptionName] {
			h.SetOption(o.Level, o.Name, o.value)
		}
	}
	return h, true
}

// givenOption is an option that was set on a socket without a connection.
type givenOption struct {
	socket.OptionName
	value []byte
}

// keepGiven records an option that accepted connections inherit.
func (s *tcpSocket) keepGiven(level, name int, value []byte) {
	key := socket.OptionName{Level: level, Name: name}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !hostOptions[key] && !hostLocal[key] || s.conn.Load() != nil {
		return
	}
	s.given = slices.DeleteFunc(slices.Clone(s.given), func(o givenOption) bool { return o.OptionName == key })
	s.given = append(s.given, givenOption{key, slices.Clone(value)})
}

// AttachHost lets the runtime's poller watch the host's descriptor, which it returns. The poller
// records the events that it receives in a from now on. ok is false if the file is not a connection of
// the host, or if the poller already watches it through another descriptor; then the caller must use
// Attach. DetachHost undoes AttachHost.
func (p *Process) AttachHost(fd int, a *Arrivals) (descriptor int, ok bool) {
	s := p.hostTCP(fd)
	w := &file.Watch{}
	if s == nil || !s.polled.CompareAndSwap(nil, w) {
		return 0, false
	}
	if !p.fds.Poller(fd).CompareAndSwap(nil, w) {
		s.polled.Store(nil)
		return 0, false
	}
	a.word.Store(0)
	s.input.watch(a)
	return s.host.Descriptor(), true
}

// DetachHost undoes AttachHost. If ok is false, the caller must use Detach.
func (p *Process) DetachHost(fd int) (descriptor int, ok bool) {
	s := p.hostTCP(fd)
	if s == nil {
		return 0, false
	}
	w := s.polled.Load()
	if w == nil || !p.fds.Poller(fd).CompareAndSwap(w, nil) {
		return 0, false
	}
	s.input.watch(nil)
	s.polled.Store(nil)
	return s.host.Descriptor(), true
}

// hostTCP returns the connection of the host behind fd, or nil.
func (p *Process) hostTCP(fd int) *hostTCP {
	if o := p.fds.Get(fd); o != nil {
		if s, ok := o.File.(*hostTCP); ok {
			return s
		}
	}
	return nil
}

// peerOf returns the peer address for accept(2). The peer may have closed the connection since.
func peerOf(s socket.Socket) Address {
	if h, ok := s.(*hostTCP); ok {
		return h.from
	}
	a, _ := s.Peer()
	return a
}

// urgent is a socket that supports urgent data.
type urgent interface {
	recvUrgent(b []byte, flags int) (Received, Errno)
	atMark() int
}

var _ = [...]urgent{(*tcpSocket)(nil), (*hostTCP)(nil)}
