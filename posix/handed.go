package posix

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Connections of the host's that are handed to the program: each enters the accept queue
// of the socket that listens where it leads. The host's handshake is over by then, so
// that nobody listens there shows as a reset, and that the queue is full as a wait.

// handedPatience is how long a connection waits for room in a full queue: as long as the
// gateway waits for one that it relays.
const handedPatience = 10 * time.Second

// handedPorts are the sockets that listen, by port.
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

// find finds who listens at an address, or nil. Of several (SO_REUSEPORT) the client's
// port chooses one.
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

// Way is what a connection of the host's may be to the program: one to the address At, from the
// address From.
type Way struct{ At, From netip.AddrPort }

// Hand gives the program a connection of the host's, by the first of some ways that leads to who
// listens, now or when that wants it. It resets one that nobody takes.
func (p *Process) Hand(c HostTCP, ways ...Way) {
	for _, w := range ways {
		if s := p.handed.find(w.At, w.From); s != nil {
			withhold(c, s.options().DeferAccept, func(c HostTCP) { s.offer(handed{c, w}) })
			return
		}
	}
	c.Close(true, true)
}

// offer puts a connection into the queue, or resets it if nobody listens any more.
func (s *tcpSocket) offer(c handed) {
	if !s.queued.push(c) {
		c.host.Close(true, true)
		return
	}
	s.q.tell(PollIn)
}

// handed is a connection that waits to be accepted.
type handed struct {
	host HostTCP
	Way
}

// handedQueue are those of a listening socket.
type handedQueue struct {
	mu      sync.Mutex // guards what follows
	open    bool
	backlog int
	list    []handed
}

// maxBacklog is net.core.somaxconn.
const maxBacklog = 4096

// begin is for a socket that begins to listen.
func (q *handedQueue) begin(backlog int) {
	if backlog < 0 || backlog > maxBacklog {
		backlog = maxBacklog
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open, q.backlog = true, max(backlog, 1)
}

// push appends a connection; false: nobody listens any more. One for which there is no
// room is reset if there is none in time.
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

// giveUp resets a connection that still has no room.
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

// pop takes the one that has waited longest.
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

// end is for a socket that listens no more: what waits is reset.
func (q *handedQueue) end() {
	q.mu.Lock()
	list := q.list
	q.open, q.list = false, nil
	q.mu.Unlock()
	for _, c := range list {
		c.host.Close(true, false)
	}
}

// acceptHanded accepts a connection of the host's, with the options that the listening
// socket was given.
func (s *tcpSocket) acceptHanded() (*hostTCP, bool) {
	c, ok := s.queued.pop()
	if !ok {
		return nil, false
	}
	h := s.newHostTCP(c.host, s.inet(s.net, c.At), s.inet(s.net, c.From))
	s.mu.Lock()
	h.inherited = s.given
	s.mu.Unlock()
	for _, o := range h.inherited {
		if hostOptions[o.optionName] {
			h.setOption(o.level, o.name, o.value)
		}
	}
	return h, true
}

// givenOption is an option that a program has given a socket that is no connection.
type givenOption struct {
	optionName
	value []byte
}

// keepGiven remembers an option for connections to be accepted.
func (s *tcpSocket) keepGiven(level, name int, value []byte) {
	key := optionName{level, name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !hostOptions[key] && !hostLocal[key] || s.conn.Load() != nil {
		return
	}
	s.given = slices.DeleteFunc(slices.Clone(s.given), func(o givenOption) bool { return o.optionName == key })
	s.given = append(s.given, givenOption{key, slices.Clone(value)})
}

// AttachHost has the runtime's poller wait for the host's descriptor itself, which it
// returns; false: the descriptor is another file's, or the poller has this one by another
// number, and Attach is the way. The poller takes down in a what it is told from now on.
// DetachHost undoes it.
func (p *Process) AttachHost(fd int, a *Arrivals) (descriptor int, ok bool) {
	s := p.hostTCP(fd)
	w := &watch{}
	if s == nil || !s.polled.CompareAndSwap(nil, w) {
		return 0, false
	}
	if !p.fds.poller(fd).CompareAndSwap(nil, w) {
		s.polled.Store(nil)
		return 0, false
	}
	a.word.Store(0)
	s.input.watch(a)
	return s.host.Descriptor(), true
}

// DetachHost undoes AttachHost; false: Detach is the way.
func (p *Process) DetachHost(fd int) (descriptor int, ok bool) {
	s := p.hostTCP(fd)
	if s == nil {
		return 0, false
	}
	w := s.polled.Load()
	if w == nil || !p.fds.poller(fd).CompareAndSwap(w, nil) {
		return 0, false
	}
	s.input.watch(nil)
	s.polled.Store(nil)
	return s.host.Descriptor(), true
}

// hostTCP finds an open file that is one, or returns nil.
func (p *Process) hostTCP(fd int) *hostTCP {
	if o := p.fds.get(fd); o != nil {
		if s, ok := o.file.(*hostTCP); ok {
			return s
		}
	}
	return nil
}

// peerOf is the peer that accept(2) tells, which may have gone since.
func peerOf(s socket) Address {
	if h, ok := s.(*hostTCP); ok {
		return h.from
	}
	a, _ := s.peer()
	return a
}

// urgent is a socket with urgent data.
type urgent interface {
	recvUrgent(b []byte, flags int) (Received, Errno)
	atMark() int
}

var _ = [...]urgent{(*tcpSocket)(nil), (*hostTCP)(nil)}

// msgFastOpen is MSG_FASTOPEN.
const msgFastOpen = 0x20000000
