package dhcp

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// A server for one directly attached subnet (RFC 2131 section 4.3). Messages from relay agents are dropped. pool.go has the
// bindings, and reply.go builds the replies.
//
// The server cannot probe an address before it offers it, as RFC 2131 section 2.2 recommends. Therefore no other host or
// server may use addresses of the pool. A client that detects a conflict sends DECLINE, and the address is not assigned for
// a while.

// ServerConfig describes a subnet and the configuration for its clients. Zero values are not sent.
type ServerConfig struct {
	// Addr is the server's own address with the prefix length of the subnet.
	Addr netip.Prefix
	// First and Last are the bounds of the pool, both inclusive: at most 4096 addresses of the subnet,
	// without the server's address.
	First, Last netip.Addr
	// LeaseTime is a whole number of seconds, at least a minute. 0: an hour.
	LeaseTime time.Duration
	// Authoritative means that there is no other server on the link. The server then answers clients that it
	// does not know: it grants the address they claim if that is free, and refuses any other. Otherwise it
	// stays silent, because another server may know them. A server that loses its leases when it restarts
	// should be authoritative.
	Authoritative bool

	Routers []netip.Addr
	Routes  []wire.DHCPv4Route
	DNS     []netip.Addr
	NTP     []netip.Addr
	Domain  string
	Search  []wire.DNSName
	MTU     int
}

// Errors of NewServer.
var (
	ErrSubnet    = errors.New("dhcp: the server needs an IPv4 address with its subnet, such as 10.0.2.2/24")
	ErrPool      = errors.New("dhcp: the pool must lie in the subnet, first to last, without the network, broadcast and server addresses, at most 4096 addresses")
	ErrLeaseTime = errors.New("dhcp: the lease time must be a whole number of seconds between one minute and 100 years")
)

// Durations of bindings that are not leases.
const (
	offerHold   = time.Minute      // how long an offered address is reserved for the client
	declineHold = 10 * time.Minute // how long an address is not assigned after a client has reported that another host uses it

	defaultLease = time.Hour
	shortestSold = time.Minute
	longestSold  = 100 * 365 * 24 * time.Hour
)

// ServerCounters count messages by result.
type ServerCounters struct {
	Offers, Acks, Naks uint64 // replies sent
	Declines, Releases uint64 // messages accepted
	Exhausted          uint64 // DISCOVERs for which no address was free
	OtherServer        uint64 // REQUESTs that were addressed to another server
	Unknown            uint64 // messages from unknown clients that the server must not answer
	Relayed            uint64 // messages from a relay agent, which are dropped
	Malformed          uint64 // messages without a required field, or of a type that only servers send
}

// Server assigns addresses. One owner calls its methods, with times that never decrease.
type Server struct {
	cfg      ServerConfig
	own      netip.Addr
	subnet   netip.Prefix
	pool     pool
	counters ServerCounters
}

// NewServer returns a server. It returns ErrSubnet, ErrPool or ErrLeaseTime if cfg is invalid.
func NewServer(cfg ServerConfig) (*Server, error) {
	own, subnet := cfg.Addr.Addr(), cfg.Addr.Masked()
	if !usable(own) || !usableIn(own, subnet) {
		return nil, ErrSubnet
	}
	if !usableIn(cfg.First, subnet) || !usableIn(cfg.Last, subnet) || cfg.Last.Less(cfg.First) ||
		number(cfg.Last)-number(cfg.First) >= maxPool || !own.Less(cfg.First) && !cfg.Last.Less(own) {
		return nil, ErrPool
	}
	if cfg.LeaseTime == 0 {
		cfg.LeaseTime = defaultLease
	}
	if cfg.LeaseTime < shortestSold || cfg.LeaseTime > longestSold || cfg.LeaseTime%time.Second != 0 {
		return nil, ErrLeaseTime
	}
	cfg.Routers, cfg.Routes = slices.Clone(cfg.Routers), slices.Clone(cfg.Routes)
	cfg.DNS, cfg.NTP, cfg.Search = slices.Clone(cfg.DNS), slices.Clone(cfg.NTP), slices.Clone(cfg.Search)
	return &Server{cfg: cfg, own: own, subnet: subnet, pool: newPool(cfg.First, cfg.Last)}, nil
}

// Counters returns the counts since NewServer.
func (s *Server) Counters() ServerCounters { return s.counters }

// EachLease calls yield for each lease that is valid at the time now, until yield returns
// false.
func (s *Server) EachLease(now Time, yield func(addr netip.Addr, mac wire.MAC, until Time) bool) {
	for i := range s.pool.bindings {
		b := &s.pool.bindings[i]
		if b.state == leased && b.inUse(now) && !yield(s.pool.addr(i), b.mac, b.until) {
			return
		}
	}
}

// Handle processes a message that arrived at the server's port, and returns the reply. ok is false if there
// is none.
func (s *Server) Handle(now Time, m *wire.DHCPv4) (reply Message, ok bool) {
	if m.GIAddr.IsValid() {
		s.counters.Relayed++
		return Message{}, false
	}
	key, ok := clientKey(m)
	if !ok || m.Op != wire.DHCPv4BootRequest {
		s.counters.Malformed++
		return Message{}, false
	}
	switch m.MessageType() {
	case wire.DHCPv4Discover:
		return s.discover(now, m, key)
	case wire.DHCPv4Request:
		return s.request(now, m, key)
	case wire.DHCPv4Inform:
		return s.inform(m)
	case wire.DHCPv4Decline:
		s.decline(now, m, key)
	case wire.DHCPv4Release:
		s.release(now, m, key)
	default:
		s.counters.Malformed++
	}
	return Message{}, false
}

// discover offers an address and reserves it for offerHold.
func (s *Server) discover(now Time, m *wire.DHCPv4, key string) (Message, bool) {
	i, ok := s.pool.choose(now, key, m.RequestedIP())
	if !ok {
		s.counters.Exhausted++
		return Message{}, false
	}
	if b := &s.pool.bindings[i]; b.state != leased || !b.inUse(now) { // an offer must not shorten a lease that the client still has
		s.pool.bind(i, offered, now+offerHold, key, m.CHAddr)
	}
	s.counters.Offers++
	return s.grant(m, wire.DHCPv4Offer, s.pool.addr(i)), true
}

// request handles a REQUEST (RFC 2131 section 4.3.2). The fields that the client has filled in show its state.
func (s *Server) request(now Time, m *wire.DHCPv4, key string) (Message, bool) {
	server, wanted := m.ServerID(), m.RequestedIP()
	switch {
	case server.IsValid() && server != s.own: // state SELECTING: the client has accepted the offer of another server
		if i, ok := s.pool.of(key); ok && s.pool.bindings[i].state == offered {
			s.pool.release(i, now)
		}
		s.counters.OtherServer++
		return Message{}, false
	case server.IsValid() && wanted.IsValid(): // state SELECTING: the client has accepted an offer of this server
		if i, ok := s.pool.of(key); ok && s.pool.addr(i) == wanted {
			return s.commit(now, m, key, i)
		}
		return s.nak(m, "that address was not offered to you")
	case server.IsValid():
		s.counters.Malformed++
		return Message{}, false
	case wanted.IsValid(): // state INIT-REBOOT
		return s.confirm(now, m, key, wanted)
	case m.CIAddr.IsValid(): // state RENEWING or REBINDING
		return s.confirm(now, m, key, m.CIAddr)
	}
	s.counters.Malformed++
	return Message{}, false
}

// confirm decides whether a client may keep the address that it claims.
func (s *Server) confirm(now Time, m *wire.DHCPv4, key string, wanted netip.Addr) (Message, bool) {
	had, known := s.pool.of(key)
	i, ours := s.pool.index(wanted)
	switch {
	case known && ours && had == i:
		return s.commit(now, m, key, i)
	case known && s.pool.bindings[had].state == leased && s.pool.bindings[had].inUse(now):
		return s.nak(m, "you have another address")
	case s.cfg.Authoritative && ours && !s.pool.bindings[i].inUse(now):
		return s.commit(now, m, key, i)
	case s.cfg.Authoritative, !m.CIAddr.IsValid() && !s.subnet.Contains(wanted):
		// A client that has moved here from another network is also answered by a NAK.
		return s.nak(m, "you cannot have that address here")
	}
	// "If the DHCP server has no record of this client, then it MUST remain silent" (RFC 2131 section 4.3.2): another server
	// may have a record. An offer that the client has not accepted does not count as a record.
	s.counters.Unknown++
	return Message{}, false
}

// commit leases address i to a client.
func (s *Server) commit(now Time, m *wire.DHCPv4, key string, i int) (Message, bool) {
	s.pool.bind(i, leased, now+s.cfg.LeaseTime, key, m.CHAddr)
	s.counters.Acks++
	return s.grant(m, wire.DHCPv4Ack, s.pool.addr(i)), true
}

// decline blocks an address that its client found in use (RFC 2131 section 4.3.3). Only the client that was
// assigned the address can do so.
func (s *Server) decline(now Time, m *wire.DHCPv4, key string) {
	i, ok := s.pool.of(key)
	if !ok || m.ServerID() != s.own || s.pool.addr(i) != m.RequestedIP() {
		s.counters.Malformed++
		return
	}
	s.pool.setAside(i, now+declineHold)
	s.counters.Declines++
}

// release frees an address (RFC 2131 section 4.3.4).
func (s *Server) release(now Time, m *wire.DHCPv4, key string) {
	i, ok := s.pool.of(key)
	if !ok || m.ServerID() != s.own || s.pool.addr(i) != m.CIAddr {
		s.counters.Malformed++
		return
	}
	s.pool.release(i, now)
	s.counters.Releases++
}
