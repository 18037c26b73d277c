package inet

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"loam/posix/file"
	"loam/posix/socket"
)

// Connections of the host that are offered to listening sockets of the program: see posix/handed.

// Offered is a connection that waits to be accepted.
type Offered interface {
	// Accept returns the socket of the connection, for the listening socket l.
	Accept(l *TCPSocket) socket.Socket
	// Reset resets the connection instead of passing it to the program. refused means that no socket has received it.
	Reset(refused bool)
}

// patience is how long a connection waits for room in a full accept queue. The gateway, which forwards published ports,
// waits as long before it resets a connection.
const patience = 10 * time.Second

// ports holds the listening sockets by port.
type ports struct {
	mu     sync.Mutex
	byPort map[uint16][]*TCPSocket
}

func (h *ports) add(s *TCPSocket, port uint16) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byPort == nil {
		h.byPort = make(map[uint16][]*TCPSocket)
	}
	h.byPort[port] = append(h.byPort[port], s)
}

func (h *ports) remove(s *TCPSocket, port uint16) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.DeleteFunc(h.byPort[port], func(x *TCPSocket) bool { return x == s })
	if len(list) == 0 {
		delete(h.byPort, port)
		return
	}
	h.byPort[port] = list
}

// find returns the socket that listens at an address, or nil. If several do (SO_REUSEPORT), the
// client's port selects one.
func (h *ports) find(at, from netip.AddrPort) *TCPSocket {
	h.mu.Lock()
	defer h.mu.Unlock()
	var exact, wild []*TCPSocket
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

// Offer queues a connection, or resets it if the socket has stopped listening.
func (s *TCPSocket) Offer(c Offered) {
	if !s.queued.push(c) {
		c.Reset(true)
		return
	}
	s.Waiters.Notify(file.PollIn)
}

// offeredQueue is the queue of offered connections of a listening socket.
type offeredQueue struct {
	mu      sync.Mutex // guards the fields below
	open    bool
	backlog int
	list    []Offered
}

// begin opens the queue when the socket starts to listen.
func (q *offeredQueue) begin(backlog int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open, q.backlog = true, max(backlog, 1)
}

// push appends a connection to the queue. It returns false if the socket no longer listens. If the queue already has as many
// connections as the backlog allows, the connection is reset unless there is room for it within patience.
func (q *offeredQueue) push(c Offered) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open {
		return false
	}
	if q.list = append(q.list, c); len(q.list) > q.backlog {
		time.AfterFunc(patience, func() { q.giveUp(c) })
	}
	return true
}

// giveUp resets a connection that is still beyond the backlog.
func (q *offeredQueue) giveUp(c Offered) {
	q.mu.Lock()
	i := slices.Index(q.list, c)
	late := i >= q.backlog
	if late {
		q.list = slices.Delete(q.list, i, i+1)
	}
	q.mu.Unlock()
	if late {
		c.Reset(true)
	}
}

// pop removes and returns the oldest connection.
func (q *offeredQueue) pop() (c Offered, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return c, false
	}
	c = q.list[0]
	q.list = slices.Delete(q.list, 0, 1)
	return c, true
}

func (q *offeredQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list)
}

// end closes the queue when the socket stops listening. It resets the waiting connections.
func (q *offeredQueue) end() {
	q.mu.Lock()
	list := q.list
	q.open, q.list = false, nil
	q.mu.Unlock()
	for _, c := range list {
		c.Reset(false)
	}
}

// GivenOption is an option that was set on a socket without a connection.
type GivenOption struct {
	socket.OptionName
	Value []byte
}

// keepGiven records an option that was set on a listening socket and that accepted connections inherit.
func (s *TCPSocket) keepGiven(level, name int, value []byte) {
	key := socket.OptionName{Level: level, Name: name}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.conn.Load() != nil {
		return
	}
	s.given = slices.DeleteFunc(slices.Clone(s.given), func(o GivenOption) bool { return o.OptionName == key })
	s.given = append(s.given, GivenOption{key, slices.Clone(value)})
}

// Given returns the options that connections accepted from s inherit. The list must not be modified.
func (s *TCPSocket) Given() []GivenOption {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.given
}

// LocalName converts an address of a connection to an address of the family of s.
func (s *TCPSocket) LocalName(a netip.AddrPort) socket.Address { return s.inet(s.net, a) }

// DeferAccept returns how long a new connection is withheld from the listener until it has data (TCP_DEFER_ACCEPT).
func (s *TCPSocket) DeferAccept() time.Duration { return s.options().DeferAccept }

// Listening returns the socket that listens at an address, or nil. from is the address of the client.
func (n *Network) Listening(at, from netip.AddrPort) *TCPSocket { return n.ports.find(at, from) }
