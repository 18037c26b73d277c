package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// Stateless DHCP for IPv6 (RFC 8415 section 18.2.6): a host that has its addresses from
// elsewhere asks for name servers, and again before what it was told is out of date.

// Constants of RFC 8415 section 7.6.
const (
	informMaxDelay   = time.Second // before the first question
	informTimeout    = time.Second
	informMaxTimeout = time.Hour
	refreshDefault   = 24 * time.Hour
	refreshMinimum   = 10 * time.Minute
)

// Inform is the client of an interface:
//
//	Start --> asking -- Reply --> informed
//	            ^                    |
//	            +--- time to refresh +
type Inform struct {
	id       []byte
	question question
	most     time.Duration // between questions
	asking   bool
	refresh  time.Duration // when to ask again; timer.Never: not
	servers  []netip.Addr  // nil: nothing has been said
}

// NewInform returns a client that does not ask yet.
func NewInform(mac wire.MAC, random *rand.Rand) *Inform {
	return &Inform{id: clientID(mac), question: question{random: random, next: timer.Never}, most: informMaxTimeout, refresh: timer.Never}
}

// Start begins to ask, if that has not begun.
func (c *Inform) Start(now time.Duration) {
	if !c.asking && c.servers == nil {
		c.ask(now)
	}
}

func (c *Inform) ask(now time.Duration) {
	c.asking, c.refresh = true, timer.Never
	c.question.ask(now, informMaxDelay, informTimeout, c.most)
}

// Deadline is when Poll has something to do, timer.Never if not.
func (c *Inform) Deadline() time.Duration { return min(c.question.next, c.refresh) }

// Poll reports whether there is a question to be sent, to all servers of the link. It counts as
// sent then.
func (c *Inform) Poll(now time.Duration) (m wire.DHCPv6, ok bool) {
	if now >= c.refresh {
		c.ask(now)
	}
	if now < c.question.next {
		return m, false
	}
	elapsed := c.question.asked(now)
	return wire.DHCPv6{Type: wire.DHCPv6InformationRequest, Transaction: c.question.transaction, ClientID: c.id, Elapsed: elapsed}, true
}

// Receive takes in a message, and reports whether Servers may say something else than before. It
// has to answer the question that was asked (section 16.10).
func (c *Inform) Receive(now time.Duration, m *wire.DHCPv6) bool {
	if !c.asking || m.Type != wire.DHCPv6Reply || !c.question.answers(m, c.id) {
		return false
	}
	limit(&c.most, m.InfMaxRT)
	if m.Status != wire.DHCPv6Success { // it has nothing for us: others may
		c.question.most = c.most
		return false
	}
	c.asking = false
	c.question.answered()
	if m.Refresh != wire.LifetimeForever {
		refresh := refreshDefault
		if m.Refresh != 0 {
			refresh = max(time.Duration(m.Refresh)*time.Second, refreshMinimum)
		}
		c.refresh = now + refresh
	}
	before := c.servers
	c.servers = believed(m.DNS)
	return !slices.Equal(before, c.servers)
}

// Servers are the name servers, the first to be asked first.
func (c *Inform) Servers() []netip.Addr { return c.servers }
