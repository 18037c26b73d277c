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
//	Selecting   says DISCOVER;  OFFER --> Requesting
//	Requesting  says REQUEST;   ACK --> Bound;   NAK, or no answer --> Selecting
//	Rebooting   says REQUEST;   ACK --> Bound;   NAK, or no answer --> Selecting
//	Bound       is silent;      T1 --> Renewing
//	Renewing    asks its server; ACK --> Bound;  T2 --> Rebinding
//	Rebinding   asks everyone;   ACK --> Bound;  expiry --> Selecting
//	Init        waits, after trouble, before it goes to Selecting
//
// From the three states with a lease, a NAK leads to Selecting, an address
// conflict that the owner reports to Init (with DECLINE), and Close to Stopped
// (with RELEASE).
//
// Three choices where the RFC leaves them open. The first acceptable offer is
// taken: waiting for better ones costs every start time. There is no random wait
// of one to ten seconds before the first DISCOVER: it spreads out machines that
// power comes back to at once, and whoever starts a virtual machine waits for
// it. And an address is used as soon as it is acknowledged; probing for it (RFC
// 5227) is the owner's business, who reports what it found to Conflict.

// Config says on whose behalf a client asks.
type Config struct {
	MAC wire.MAC
	// HostName is told to the server, if it is not empty.
	HostName string
	// ClientID is the client identifier, type octet first; nil stands for the
	// hardware address with its type (RFC 2132 section 9.14).
	ClientID []byte
	// Requested is the address of an earlier lease on this link, to ask for at
	// once (INIT-REBOOT). Zero: none.
	Requested netip.Addr
	// Broadcast asks the server to answer to 255.255.255.255, for an interface
	// that drops unicast packets as long as it has no address. Without it the
	// server sends to the address that the client is about to get, at its
	// hardware address: cheaper for everybody else on the link.
	Broadcast bool
	// MTU is that of the interface; answers may be as large. 0: as large as
	// everybody accepts, wire.DHCPv4MaxSize.
	MTU int
	// Rand makes transaction identifiers and spreads retransmissions.
	Rand *rand.Rand
}

// State is where a client stands in the protocol.
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

// String is the name of the state.
func (s State) String() string { return stateText[s] }

// EventKind says what happened to the lease.
type EventKind uint8

// Kinds of event.
const (
	Acquired EventKind = iota + 1 // there is a lease now: it replaces whatever was there before
	Renewed                       // the same address for longer; other values may have changed
	Lost                          // the address has to be taken off the interface
)

// Reason says why a lease was lost.
type Reason uint8

// Reasons.
const (
	Expired  Reason = iota + 1
	Refused         // the server said NAK
	Conflict        // the owner found somebody else with the address
	Released        // by Close
)

// Event is a change of the lease.
type Event struct {
	Kind   EventKind
	Reason Reason // of Lost
	Lease  Lease  // what there is now, or was lost
}

// ClientCounters count messages that changed nothing, by reason, and restarts.
type ClientCounters struct {
	NotForUs   uint64 // another client's: direction, transaction, hardware address or identifier
	Unexpected uint64 // a type that the state has no use for, or another server than the one asked
	BadOffer   uint64 // an offer that cannot be accepted: address, server or lease time
	BadAck     uint64 // likewise, or not what was asked for
	Naks       uint64
	Timeouts   uint64 // requests that nobody answered
}

// How patient a client is.
const (
	firstRetry = 4 * time.Second // RFC 2131 section 4.1: doubled up to 64 s, give or take one
	maxDoubled = 4
	// requestTries is how often an offer, and rebootTries how often an earlier
	// address, is asked for before starting afresh: after 60 and after 12 s.
	requestTries = 4
	rebootTries  = 2
	// extendWait is the shortest wait between requests to extend a lease (RFC
	// 2131 section 4.4.5).
	extendWait = 60 * time.Second
	// declineWait is how long to stay away after an address conflict (RFC 2131
	// section 3.1 item 5).
	declineWait = 10 * time.Second
)

// Client keeps one lease. Its methods must be called by one owner, with times
// that do not decrease. What they leave behind is fetched with Poll and
// NextEvent, and Deadline says when to call Tick.
type Client struct {
	cfg      Config
	state    State
	deadline Time

	xid      uint32
	began    Time       // when this attempt to get or extend a lease began
	tries    int        // messages sent in this state
	naks     int        // in a row, without a lease in between
	wanted   netip.Addr // to be asked for in DISCOVER or REQUEST
	chosen   netip.Addr // the server whose offer was taken
	secs     uint16     // in the DISCOVER whose offer was taken
	sent     Time       // when the first REQUEST of this attempt was sent
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
		cfg.ClientID = append([]byte{1}, cfg.MAC[:]...) // 1: Ethernet
	}
	return &Client{cfg: cfg, wanted: cfg.Requested, deadline: Never}
}

// State is the state that the client is in.
func (c *Client) State() State { return c.state }

// Counters are counted since NewClient.
func (c *Client) Counters() ClientCounters { return c.counters }

// Lease is what the client holds; ok is false if there is none.
func (c *Client) Lease() (l Lease, ok bool) { return c.lease, c.hasLease }

// Deadline is when Tick wants to be called; Never if it does not.
func (c *Client) Deadline() Time { return c.deadline }

// Poll returns the message to send, once. It is called after every other method;
// a message that was not fetched by then is replaced by a later one.
func (c *Client) Poll() (Message, bool) {
	m, ok := c.out, c.hasOut
	c.out, c.hasOut = Message{}, false
	return m, ok
}

// NextEvent returns what happened to the lease since it was last called. Of
// several changes only the last is told, and it says all that matters: Acquired
// replaces what there was, and Lost leaves nothing.
func (c *Client) NextEvent() (Event, bool) {
	e, ok := c.event, c.hasEvent
	c.event, c.hasEvent = Event{}, false
	return e, ok
}

// Start begins to get a lease, if the client is stopped.
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

// Conflict tells the client that another station uses the address of the lease
// (RFC 5227). The client gives it back as unusable and gets another one, after a
// while.
func (c *Client) Conflict(now Time) {
	if !c.hasLease {
		return
	}
	c.sendDecline(now)
	c.lose(Conflict)
	c.wanted = netip.Addr{}
	c.wait(now + declineWait)
}

// Close gives the lease back and stops the client; Start may start it again. The
// server is told once: it finds out by itself if that message is lost.
func (c *Client) Close(now Time) {
	c.hasOut = false
	if c.hasLease {
		c.sendRelease(now)
		c.wanted = netip.Addr{}
		c.lose(Released)
	}
	c.state, c.deadline = Stopped, Never
}

// Tick lets time pass: it does what is due at now. A call before Deadline does
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

// extend does what is due for a lease, which may be more than one step: the
// machine may have slept.
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

// discover starts from the beginning.
func (c *Client) discover(now Time) {
	c.begin(now, Selecting)
	c.sendDiscover(now)
}

// begin enters a state in which messages are sent, as a new transaction.
func (c *Client) begin(now Time, s State) {
	c.state, c.xid, c.began, c.tries = s, c.cfg.Rand.Uint32(), now, 0
	c.sent = now
}

// wait enters Init until a time.
func (c *Client) wait(until Time) { c.state, c.deadline = Init, until }

// lose drops the lease and says so.
func (c *Client) lose(why Reason) {
	c.event, c.hasEvent = Event{Kind: Lost, Reason: why, Lease: c.lease}, true
	c.lease, c.hasLease = Lease{}, false
}

// backoff is how long to wait after the n-th message, counted from 0: 4, 8, 16,
// 32 and then 64 s, each give or take one (RFC 2131 section 4.1).
func (c *Client) backoff(n int) time.Duration {
	spread := time.Duration(c.cfg.Rand.Int64N(int64(2*time.Second))) - time.Second
	return firstRetry<<min(n, maxDoubled) + spread
}
