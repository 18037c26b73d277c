package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"loam/wire"
)

// The client of RFC 2131 section 4.4. Its states, after figure 5 there:
//
//	Stopped --Start--> Selecting                 or, with Requested, Rebooting
//	Selecting   sends DISCOVER;  OFFER --> Requesting
//	Requesting  sends REQUEST;   ACK --> Bound;   NAK, or no answer --> Selecting
//	Rebooting   sends REQUEST;   ACK --> Bound;   NAK, or no answer --> Selecting
//	Bound       is silent;       T1 --> Renewing
//	Renewing    asks its server; ACK --> Bound;   T2 --> Rebinding
//	Rebinding   asks all servers; ACK --> Bound;  expiry --> Selecting
//	Init        waits, after an error, before Selecting
//
// From the three states with a lease, a NAK leads to Selecting. An address conflict reported by the owner
// leads to Init (with DECLINE), and Close leads to Stopped (with RELEASE).
//
// The RFC leaves three choices. The client takes the first acceptable offer, because waiting for better ones
// would delay every start. It does not wait one to ten seconds before the first DISCOVER. That wait spreads
// out machines that boot simultaneously after a power failure, but would delay the start of every virtual
// machine. An address is used as soon as it is acknowledged; the owner may probe for it (RFC 5227) and
// reports a conflict with Conflict.

// Config describes the host for which a client requests an address.
type Config struct {
	MAC wire.MAC
	// HostName is sent to the server, if it is not empty.
	HostName string
	// ClientID is the client identifier, type octet first. nil means the hardware address with its type (RFC
	// 2132 section 9.14).
	ClientID []byte
	// Requested is the address of an earlier lease on this link, which the client requests at once
	// (INIT-REBOOT). Zero: none.
	Requested netip.Addr
	// Broadcast asks the server to answer to 255.255.255.255, for an interface that drops unicast packets
	// while it has no address. Without it, the server sends to the future address of the client at its
	// hardware address, which costs the other hosts on the link nothing.
	Broadcast bool
	// MTU is the MTU of the interface and the maximum size of answers. 0 means wire.DHCPv4MaxSize, which
	// every host accepts.
	MTU int
	// Rand generates transaction identifiers and random delays. It is required.
	Rand *rand.Rand
}

// State is the state of a client.
type State uint8

// States (RFC 2131 figure 5; INIT and INIT-REBOOT are left at once).
const (
	Stopped State = iota
	Init
	Selecting
	Requesting
	Rebooting
	Bound
	Renewing
	Rebinding
)

var stateText = [...]string{
	"stopped", "init", "selecting", "requesting", "rebooting", "bound", "renewing", "rebinding",
}

// String returns the name of the state.
func (s State) String() string { return stateText[s] }

// EventKind is the kind of a change of the lease.
type EventKind uint8

// Values of EventKind: what happened to the lease.
const (
	Acquired EventKind = iota + 1 // there is a new lease, which replaces any earlier lease
	Renewed                       // the lease was extended; values other than the address may have changed
	Lost                          // the lease has ended: the owner removes the address from the interface
)

// Reason is the reason why a lease was lost.
type Reason uint8

// Values of Reason: why a lease was lost.
const (
	Expired  Reason = iota + 1
	Refused         // the server sent a DHCPNAK
	Conflict        // the owner has called Conflict, because another host has the address
	Released        // the owner called Close
)

// Event is a change of the lease.
type Event struct {
	Kind   EventKind
	Reason Reason // reason of an event of kind Lost
	Lease  Lease  // the current lease, or for Lost the former one
}

// ClientCounters count ignored messages by reason, and restarts.
type ClientCounters struct {
	NotForUs   uint64 // ignored messages for another client: wrong direction, transaction, hardware address or identifier
	Unexpected uint64 // ignored messages of a type that does not fit the state, or from a server that was not asked
	BadOffer   uint64 // ignored offers with an invalid address, server or lease time
	BadAck     uint64 // ignored ACKs with an invalid address, server or lease time, or for an address that was not requested
	Naks       uint64
	Timeouts   uint64 // requests that no server has answered
}

// Retransmission parameters of the client.
const (
	// first retransmission after 4 s, doubled up to 64 s, plus or minus one second (RFC 2131 section 4.1)
	firstRetry = 4 * time.Second
	maxDoubled = 4
	// requestTries is how many times an offered address is requested before the client starts again (60 s). rebootTries is
	// the same number for the address of an earlier lease (12 s).
	requestTries = 4
	rebootTries  = 2
	// extendWait is the minimum wait between requests to extend a lease (RFC 2131 section 4.4.5).
	extendWait = 60 * time.Second
	// declineWait is the wait after an address conflict (RFC 2131 section 3.1 item 5).
	declineWait = 10 * time.Second
)

// Client keeps one lease. One owner calls its methods, with times that never decrease. After each call the
// owner fetches results with Poll and NextEvent. Deadline returns when to call Tick.
type Client struct {
	cfg      Config
	state    State
	deadline Time

	xid      uint32
	began    Time       // time at which the current attempt to get or extend a lease began
	tries    int        // number of messages sent in this state
	naks     int        // consecutive NAKs, since the last lease
	wanted   netip.Addr // address that DISCOVER or REQUEST asks for
	chosen   netip.Addr // server whose offer was accepted
	secs     uint16     // secs field of the DISCOVER whose offer was accepted
	sent     Time       // time at which the first REQUEST of this attempt was sent
	lease    Lease
	hasLease bool

	out      Message
	hasOut   bool
	event    Event
	hasEvent bool
	counters ClientCounters
}

// NewClient returns a stopped client.
func NewClient(cfg Config) *Client {
	if cfg.ClientID == nil {
		cfg.ClientID = append([]byte{1}, cfg.MAC[:]...) // type octet 1: Ethernet
	}
	return &Client{cfg: cfg, wanted: cfg.Requested, deadline: Never}
}

// State returns the current state.
func (c *Client) State() State { return c.state }

// Counters returns the counts since NewClient.
func (c *Client) Counters() ClientCounters { return c.counters }

// Lease returns the current lease. ok is false if there is none.
func (c *Client) Lease() (l Lease, ok bool) { return c.lease, c.hasLease }

// Deadline returns when Tick must be called, or Never.
func (c *Client) Deadline() Time { return c.deadline }

// Poll returns the message to send, once. The owner calls it after every other method. A message that was not
// fetched is replaced by the next one.
func (c *Client) Poll() (Message, bool) {
	m, ok := c.out, c.hasOut
	c.out, c.hasOut = Message{}, false
	return m, ok
}

// NextEvent returns the change of the lease since the last call. If there were several changes, it returns only the last
// one. That is sufficient: Acquired replaces any earlier lease, and after Lost there is no lease.
func (c *Client) NextEvent() (Event, bool) {
	e, ok := c.event, c.hasEvent
	c.event, c.hasEvent = Event{}, false
	return e, ok
}

// Start begins to request a lease, if the client is stopped.
func (c *Client) Start(now Time) {
	if c.state != Stopped {
		return
	}
	if c.wanted.IsValid() {
		c.begin(now, Rebooting)
		c.sendRequest(now)
	} else {
		c.discover(now)
	}
}

// Conflict reports that another station uses the address of the lease (RFC 5227). The client declines the
// address and requests another one after a delay.
func (c *Client) Conflict(now Time) {
	if !c.hasLease {
		return
	}
	c.sendDecline(now)
	c.lose(Conflict)
	c.wanted = netip.Addr{}
	c.wait(now + declineWait)
}

// Close releases the lease and stops the client; Start may start it again. The release is sent only once. If
// it is lost, the lease expires on the server.
func (c *Client) Close(now Time) {
	c.hasOut = false
	if c.hasLease {
		c.sendRelease(now)
		c.wanted = netip.Addr{}
		c.lose(Released)
	}
	c.state, c.deadline = Stopped, Never
}

// Tick performs the actions that are due at the time now. Before Deadline it does
// nothing.
func (c *Client) Tick(now Time) {
	if now < c.deadline {
		return
	}
	switch c.state {
	case Init:
		c.discover(now)
	case Selecting:
		c.sendDiscover(now)
	case Requesting, Rebooting:
		tries := requestTries
		if c.state == Rebooting {
			tries = rebootTries
		}
		if c.tries < tries {
			c.sendRequest(now)
			return
		}
		c.counters.Timeouts++
		c.discover(now)
	case Bound, Renewing, Rebinding:
		c.extend(now)
	}
}

// extend performs the actions due for a lease. Several may be due, because the machine may have been suspended.
func (c *Client) extend(now Time) {
	switch {
	case now >= c.lease.Expires:
		c.counters.Timeouts++
		c.wanted = c.lease.Addr.Addr()
		c.lose(Expired)
		c.discover(now)
	case now >= c.lease.T2:
		if c.state != Rebinding {
			c.begin(now, Rebinding)
		}
		c.sendRequest(now)
	default:
		if c.state != Renewing {
			c.begin(now, Renewing)
		}
		c.sendRequest(now)
	}
}

// discover starts the search for a server.
func (c *Client) discover(now Time) {
	c.begin(now, Selecting)
	c.sendDiscover(now)
}

// begin enters a state in which messages are sent, with a new transaction.
func (c *Client) begin(now Time, s State) {
	c.state, c.xid, c.began, c.tries = s, c.cfg.Rand.Uint32(), now, 0
	c.sent = now
}

// wait enters the state Init until the given time.
func (c *Client) wait(until Time) { c.state, c.deadline = Init, until }

// lose drops the lease and records the event.
func (c *Client) lose(why Reason) {
	c.event, c.hasEvent = Event{Kind: Lost, Reason: why, Lease: c.lease}, true
	c.lease, c.hasLease = Lease{}, false
}

// backoff returns how long to wait after the n-th message, counted from 0: 4, 8, 16, 32 and then 64 s, each
// plus or minus one second (RFC 2131 section 4.1).
func (c *Client) backoff(n int) time.Duration {
	spread := time.Duration(c.cfg.Rand.Int64N(int64(2*time.Second))) - time.Second
	return firstRetry<<min(n, maxDoubled) + spread
}
