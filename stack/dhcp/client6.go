package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// The client of DHCP for IPv6 that gets addresses (RFC 8415 sections 18.2.1 to 18.2.8). Its
// states; each but idle and bound asks a question until it is answered:
//
//	idle        --Start--> soliciting
//	soliciting  says SOLICIT;  the best ADVERTISE of the first second --> requesting;
//	            REPLY with rapid commit --> bound
//	requesting  says REQUEST;  REPLY --> bound;  no answer, or none left --> soliciting
//	bound       is silent;     T1 --> renewing
//	renewing    says RENEW;    REPLY --> bound;  T2 --> rebinding;  not known --> requesting
//	rebinding   says REBIND;   REPLY --> bound;  not known --> requesting
//	declining   says DECLINE, of an address that another host has; REPLY, or none --> soliciting
//
// When the last address has run out, all of them lead to soliciting. Whatever a server says of
// name servers is believed with its addresses. There is one association, without temporary
// addresses (RFC 8981) and prefixes; messages of servers that want to be asked (RECONFIGURE) are
// not accepted, which is told by not offering it.

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

	best         = 255 // the preference of a server that nobody else is waited for
	maxAddresses = 4   // are believed in; the others are not
)

// Address6 is an address of a lease.
type Address6 struct {
	Addr      netip.Addr
	Preferred time.Duration // until then it is for new connections; timer.Never: always
	Valid     time.Duration // until then it is ours
}

// Client6 is the client of an interface. It is called by one owner, with times that do not decrease.
type Client6 struct {
	id       []byte
	question question
	most     time.Duration // between Solicits

	state     state6
	server    []byte               // that was chosen, or gave the lease
	offer     wire.DHCPv6          // the best until now; ServerID nil: there is none
	wanted    []wire.DHCPv6Address // that are asked for, or declined
	addresses []Address6
	t1, t2    time.Duration // when to ask for more time
	dns       []netip.Addr
	none      bool // a server has said that it has no addresses
	changed   bool // Addresses or Servers may say something else than before
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

// NewClient6 returns a client that does not ask yet.
func NewClient6(mac wire.MAC, random *rand.Rand) *Client6 {
	return &Client6{id: clientID(mac), question: question{random: random, next: timer.Never}, most: solicitMost, t1: timer.Never, t2: timer.Never}
}

// Start begins to ask for addresses, if that has not begun.
func (c *Client6) Start(now time.Duration) {
	if c.state == idle6 {
		c.solicit(now)
	}
}

// Addresses are those of the lease, in the order in which the server named them.
func (c *Client6) Addresses() []Address6 { return c.addresses }

// Servers are the name servers, the first to be asked first.
func (c *Client6) Servers() []netip.Addr { return c.dns }

// Changed reports whether these may say something else than when it was asked last.
func (c *Client6) Changed() bool {
	changed := c.changed
	c.changed = false
	return changed
}

// None reports whether a server has said that it has no addresses, and none has given any: then
// it may still have name servers (Inform).
func (c *Client6) None() bool { return c.none && len(c.addresses) == 0 }

// Deadline is when Poll has something to do, timer.Never if not.
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

// Poll does what is due, and reports whether there is a message to be sent, to all servers of the
// link. It counts as sent then.
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

// Close gives the lease back, and stops the client. The message, if there is one, is sent once:
// addresses run out if it is lost.
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

// Conflict tells that another host has an address of the lease (section 18.2.8). All of it is given
// up: another is asked for.
func (c *Client6) Conflict(now time.Duration, addr netip.Addr) {
	if !slices.ContainsFunc(c.addresses, func(a Address6) bool { return a.Addr == addr }) {
		return
	}
	server := c.server
	c.lose()
	c.server, c.wanted = server, []wire.DHCPv6Address{{Addr: addr}}
	c.enter(now, declining)
}

// message is what the state says.
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

// association is the one of the interface, which has but one.
func (c *Client6) association() *wire.DHCPv6IA { return &wire.DHCPv6IA{ID: 1, Addresses: c.wanted} }

// held is the addresses of the lease as a message has them. Lifetimes are for the server to say.
func (c *Client6) held() (list []wire.DHCPv6Address) {
	for _, a := range c.addresses {
		list = append(list, wire.DHCPv6Address{Addr: a.Addr})
	}
	return list
}

// enter goes to a state that asks.
func (c *Client6) enter(now time.Duration, s state6) {
	c.state = s
	switch s {
	case soliciting:
		c.question.ask(now, solicitMaxDelay, solicitTimeout, c.most)
	case requesting:
		c.question.ask(now, 0, requestTimeout, requestMost)
	case declining:
		c.question.ask(now, 0, declineTimeout, time.Hour)
	default: // renewing and rebinding
		c.wanted = c.held()
		c.question.ask(now, 0, renewTimeout, renewMost)
	}
}

// solicit looks for a server.
func (c *Client6) solicit(now time.Duration) {
	c.server, c.wanted, c.offer = nil, nil, wire.DHCPv6{}
	c.enter(now, soliciting)
}

// request asks the server of an offer for its addresses.
func (c *Client6) request(now time.Duration, offer *wire.DHCPv6) {
	c.server, c.wanted = offer.ServerID, nil
	for _, a := range offer.IA.Addresses {
		c.wanted = append(c.wanted, wire.DHCPv6Address{Addr: a.Addr})
	}
	c.offer = wire.DHCPv6{}
	c.enter(now, requesting)
}

// lose forgets the lease.
func (c *Client6) lose() {
	c.changed = c.changed || c.addresses != nil || c.dns != nil
	c.addresses, c.dns, c.server, c.t1, c.t2 = nil, nil, nil, timer.Never, timer.Never
}

// expire forgets what is older than its time.
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
