package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// The DHCPv6 client that gets addresses (RFC 8415 sections 18.2.1 to 18.2.8). Its states; each one except
// idle and bound retransmits a message until it is answered:
//
//	idle        --Start--> soliciting
//	soliciting  sends SOLICIT;  the best ADVERTISE of the first second --> requesting;
//	            REPLY with rapid commit --> bound
//	requesting  sends REQUEST;  REPLY --> bound;  no answer, or no address --> soliciting
//	bound       is silent;      T1 --> renewing
//	renewing    sends RENEW;    REPLY --> bound;  T2 --> rebinding;  unknown --> requesting
//	rebinding   sends REBIND;   REPLY --> bound;  unknown --> requesting
//	declining   sends DECLINE for an address that another host has; REPLY, or none --> soliciting
//
// When the last address has expired, every state leads to soliciting. Name servers are accepted together with
// the addresses. There is one association, without temporary addresses (RFC 8981) and prefixes. RECONFIGURE
// messages are not accepted, which the client announces by not sending the Reconfigure Accept option.

// Constants of RFC 8415 section 7.6.
const (
	solicitMaxDelay = time.Second
	solicitTimeout  = time.Second
	solicitMost     = time.Hour
	requestTimeout  = time.Second
	requestMost     = 30 * time.Second
	requestTries6   = 10
	renewTimeout    = 10 * time.Second
	renewMost       = 10 * time.Minute
	declineTimeout  = time.Second
	declineTries    = 4

	best         = 255 // server preference for which a client stops waiting for other offers
	maxAddresses = 4   // maximum number of addresses accepted
)

// Address6 is an address of a lease.
type Address6 struct {
	Addr      netip.Addr
	Preferred time.Duration // time until which the address is used for new connections; timer.Never: always
	Valid     time.Duration // time at which the address becomes invalid, on the clock of the client
}

// Client6 is the client of an interface. One owner calls it, with times that never decrease.
type Client6 struct {
	id       []byte
	question question
	most     time.Duration // maximum wait between Solicit messages

	state     state6
	server    []byte               // identifier of the selected server, or of the server of the lease
	offer     wire.DHCPv6          // best offer so far; no offer if its ServerID is nil
	wanted    []wire.DHCPv6Address // addresses being requested or declined
	addresses []Address6
	t1, t2    time.Duration // times of the first Renew and of the first Rebind
	dns       []netip.Addr
	none      bool // a server has replied that it has no addresses (NoAddrsAvail)
	changed   bool // the results of Addresses, Servers or None may have changed
}

type state6 uint8

const (
	idle6 state6 = iota
	soliciting
	requesting
	bound6
	renewing
	rebinding
	declining
)

// NewClient6 returns an idle client.
func NewClient6(mac wire.MAC, random *rand.Rand) *Client6 {
	return &Client6{id: clientID(mac), question: question{random: random, next: timer.Never}, most: solicitMost, t1: timer.Never, t2: timer.Never}
}

// Start begins to ask for addresses, unless it has already begun.
func (c *Client6) Start(now time.Duration) {
	if c.state == idle6 {
		c.solicit(now)
	}
}

// Addresses returns the addresses of the lease, in the order of the server.
func (c *Client6) Addresses() []Address6 { return c.addresses }

// Servers returns the name servers, in order of preference.
func (c *Client6) Servers() []netip.Addr { return c.dns }

// Changed reports whether the results of Addresses, Servers or None may have changed since the last call.
func (c *Client6) Changed() bool {
	changed := c.changed
	c.changed = false
	return changed
}

// None reports whether a server has replied that it has no addresses, and no server has assigned an address. Such a server
// may still provide name servers, which Inform requests.
func (c *Client6) None() bool { return c.none && len(c.addresses) == 0 }

// Deadline returns when Poll must be called, or timer.Never.
func (c *Client6) Deadline() time.Duration {
	d := c.question.next
	switch c.state {
	case bound6:
		d = min(d, c.t1)
	case renewing:
		d = min(d, c.t2)
	}
	for _, a := range c.addresses {
		for _, t := range [...]time.Duration{a.Preferred, a.Valid} {
			if t != 0 {
				d = min(d, t)
			}
		}
	}
	return d
}

// Poll performs the actions that are due, and returns the message to send to all servers of the link. The
// message counts as sent now. ok is false if there is none.
func (c *Client6) Poll(now time.Duration) (m wire.DHCPv6, ok bool) {
	c.expire(now)
	switch {
	case c.state == bound6 && now >= c.t1:
		c.enter(now, renewing)
	case c.state == renewing && now >= c.t2:
		c.enter(now, rebinding)
	}
	if now < c.question.next {
		return m, false
	}
	switch {
	case c.state == soliciting && c.offer.ServerID != nil:
		c.request(now, &c.offer)
	case c.state == requesting && c.question.sent >= requestTries6, c.state == declining && c.question.sent >= declineTries:
		c.solicit(now)
	}
	if now < c.question.next {
		return m, false
	}
	return c.message(now), true
}

// Close releases the lease and stops the client. The message, if any, is sent once. If it is lost, the
// addresses expire on the server.
func (c *Client6) Close() (m wire.DHCPv6, ok bool) {
	ok = len(c.addresses) > 0
	if ok {
		c.wanted = c.held()
		m = wire.DHCPv6{Type: wire.DHCPv6Release, Transaction: c.question.random.Uint32() & 0xffffff, ClientID: c.id, ServerID: c.server, IA: c.association()}
	}
	c.lose()
	c.state = idle6
	c.question.answered()
	return m, ok
}

// Conflict reports that another host has an address of the lease (RFC 8415 section 18.2.8). The client gives up the
// whole lease and requests another one.
func (c *Client6) Conflict(now time.Duration, addr netip.Addr) {
	if !slices.ContainsFunc(c.addresses, func(a Address6) bool { return a.Addr == addr }) {
		return
	}
	server := c.server
	c.lose()
	c.server, c.wanted = server, []wire.DHCPv6Address{{Addr: addr}}
	c.enter(now, declining)
}

// message returns the message of the current state.
func (c *Client6) message(now time.Duration) wire.DHCPv6 {
	elapsed := c.question.asked(now)
	m := wire.DHCPv6{Transaction: c.question.transaction, ClientID: c.id, ServerID: c.server, IA: c.association(), Elapsed: elapsed}
	switch c.state {
	case soliciting:
		m.Type, m.RapidCommit, m.ServerID = wire.DHCPv6Solicit, true, nil
	case requesting:
		m.Type = wire.DHCPv6Request
	case renewing:
		m.Type = wire.DHCPv6Renew
	case rebinding:
		m.Type, m.ServerID = wire.DHCPv6Rebind, nil
	case declining:
		m.Type = wire.DHCPv6Decline
	}
	return m
}

// association returns the only identity association of the interface.
func (c *Client6) association() *wire.DHCPv6IA { return &wire.DHCPv6IA{ID: 1, Addresses: c.wanted} }

// held returns the addresses of the lease for a message, without lifetimes: the server sets them.
func (c *Client6) held() (list []wire.DHCPv6Address) {
	for _, a := range c.addresses {
		list = append(list, wire.DHCPv6Address{Addr: a.Addr})
	}
	return list
}

// enter changes to a state that sends messages.
func (c *Client6) enter(now time.Duration, s state6) {
	c.state = s
	switch s {
	case soliciting:
		c.question.ask(now, solicitMaxDelay, solicitTimeout, c.most)
	case requesting:
		c.question.ask(now, 0, requestTimeout, requestMost)
	case declining:
		c.question.ask(now, 0, declineTimeout, time.Hour)
	default: // the client extends its lease (renewing, rebinding)
		c.wanted = c.held()
		c.question.ask(now, 0, renewTimeout, renewMost)
	}
}

// solicit starts to look for a server.
func (c *Client6) solicit(now time.Duration) {
	c.server, c.wanted, c.offer = nil, nil, wire.DHCPv6{}
	c.enter(now, soliciting)
}

// request requests the addresses of an offer from its server.
func (c *Client6) request(now time.Duration, offer *wire.DHCPv6) {
	c.server, c.wanted = offer.ServerID, nil
	for _, a := range offer.IA.Addresses {
		c.wanted = append(c.wanted, wire.DHCPv6Address{Addr: a.Addr})
	}
	c.offer = wire.DHCPv6{}
	c.enter(now, requesting)
}

// lose drops the lease.
func (c *Client6) lose() {
	c.changed = c.changed || c.addresses != nil || c.dns != nil
	c.addresses, c.dns, c.server, c.t1, c.t2 = nil, nil, nil, timer.Never, timer.Never
}

// expire drops expired addresses.
func (c *Client6) expire(now time.Duration) {
	if len(c.addresses) == 0 {
		return
	}
	kept := c.addresses[:0:0]
	for _, a := range c.addresses {
		if now >= a.Valid {
			c.changed = true
			continue
		}
		if a.Preferred != 0 && now >= a.Preferred {
			a.Preferred, c.changed = 0, true
		}
		kept = append(kept, a)
	}
	if c.addresses = kept; len(kept) == 0 {
		c.lose()
		c.solicit(now)
	}
}
