package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// Stateless DHCP for IPv6 (RFC 8415 section 18.2.6). A host that has obtained its addresses by other means requests name
// servers, and requests them again before the information expires.

// Constants of RFC 8415 section 7.6.
const (
	informMaxDelay   = time.Second // maximum delay of the first message
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
	most     time.Duration // maximum wait between messages
	asking   bool
	refresh  time.Duration // time of the next request; timer.Never: none
	servers  []netip.Addr  // name servers; nil: no reply was received
}

// NewInform returns an idle client.
func NewInform(mac wire.MAC, random *rand.Rand) *Inform {
	return &Inform{id: clientID(mac), question: question{random: random, next: timer.Never}, most: informMaxTimeout, refresh: timer.Never}
}

// Start begins to ask, unless the client is asking or has a reply.
func (c *Inform) Start(now time.Duration) {
	if !c.asking && c.servers == nil {
		c.ask(now)
	}
}

func (c *Inform) ask(now time.Duration) {
	c.asking, c.refresh = true, timer.Never
	c.question.ask(now, informMaxDelay, informTimeout, c.most)
}

// Deadline returns when Poll must be called, or timer.Never.
func (c *Inform) Deadline() time.Duration { return min(c.question.next, c.refresh) }

// Poll returns the message to send to all servers of the link. It counts as sent now. ok is false if there is
// none.
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

// Receive processes a message and reports whether the result of Servers may have changed. A message that does
// not answer the current question is ignored (RFC 8415 section 16.10).
func (c *Inform) Receive(now time.Duration, m *wire.DHCPv6) bool {
	if !c.asking || m.Type != wire.DHCPv6Reply || !c.question.answers(m, c.id) {
		return false
	}
	limit(&c.most, m.InfMaxRT)
	if m.Status != wire.DHCPv6Success { // this server has no information; another server may have some
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

// Servers returns the name servers, in order of preference.
func (c *Inform) Servers() []netip.Addr { return c.servers }
