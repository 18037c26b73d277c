package dhcp

import (
	"bytes"
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
	minMaxRT         = time.Minute // section 21.25: what a server may set the longest timeout to
	maxMaxRT         = 24 * time.Hour

	maxInformServers = 8 // are believed in; the others are not
)

// Inform is the client of an interface:
//
//	Start --> asking -- Reply --> informed
//	            ^                    |
//	            +--- time to refresh +
type Inform struct {
	id     []byte // DUID-LL (section 11.4)
	random *rand.Rand

	asking      bool
	transaction uint32
	began       time.Duration // when the question was asked first; with timeout
	timeout     time.Duration // until it is asked again; 0: it has not been asked
	most        time.Duration // of timeout
	next        time.Duration // when something is to be done
	servers     []netip.Addr
}

// NewInform returns a client that does not ask yet.
func NewInform(mac wire.MAC, random *rand.Rand) *Inform {
	return &Inform{id: append([]byte{0, 3, 0, 1}, mac[:]...), random: random, most: informMaxTimeout, next: timer.Never}
}

// Start begins to ask, if that has not begun.
func (c *Inform) Start(now time.Duration) {
	if c.next == timer.Never && c.servers == nil {
		c.ask(now)
	}
}

func (c *Inform) ask(now time.Duration) {
	c.asking, c.timeout, c.transaction = true, 0, c.random.Uint32()&0xffffff
	c.next = now + time.Duration(c.random.Int64N(int64(informMaxDelay)))
}

// Deadline is when Poll has something to do, timer.Never if not.
func (c *Inform) Deadline() time.Duration { return c.next }

// Poll reports whether there is a question to be sent, to all servers of the link. It counts as
// sent then.
func (c *Inform) Poll(now time.Duration) (m wire.DHCPv6, ok bool) {
	if now < c.next {
		return m, false
	}
	if !c.asking {
		c.ask(now)
		return m, false
	}
	if c.timeout == 0 {
		c.began, c.timeout = now, c.spread(informTimeout, informTimeout)
	} else {
		c.timeout = c.spread(2*c.timeout, c.timeout)
	}
	if c.timeout > c.most {
		c.timeout = c.spread(c.most, c.most)
	}
	c.next = now + c.timeout
	elapsed := min((now-c.began)/(10*time.Millisecond), 0xffff)
	return wire.DHCPv6{Type: wire.DHCPv6Request, Transaction: c.transaction, ClientID: c.id, Elapsed: uint16(elapsed)}, true
}

// spread is d, longer or shorter by up to a tenth of last (section 15).
func (c *Inform) spread(d, last time.Duration) time.Duration {
	tenth := int64(last / 10)
	return d + time.Duration(c.random.Int64N(2*tenth+1)-tenth)
}

// Receive takes in a message, and reports whether Servers may say something else than before. It
// has to answer the question that was asked (section 16.10).
func (c *Inform) Receive(now time.Duration, m *wire.DHCPv6) bool {
	if !c.asking || c.timeout == 0 || m.Type != wire.DHCPv6Reply || m.Transaction != c.transaction ||
		len(m.ServerID) == 0 || !bytes.Equal(m.ClientID, c.id) {
		return false
	}
	if most := time.Duration(m.MaxRT) * time.Second; most >= minMaxRT && most <= maxMaxRT {
		c.most = most
	}
	if m.Status != 0 { // it has nothing for us: others may
		return false
	}
	c.asking, c.next = false, timer.Never
	if m.Refresh != wire.LifetimeForever {
		refresh := refreshDefault
		if m.Refresh != 0 {
			refresh = max(time.Duration(m.Refresh)*time.Second, refreshMinimum)
		}
		c.next = now + refresh
	}
	before := c.servers
	c.servers = []netip.Addr{}
	for _, a := range m.DNS {
		if len(c.servers) < maxInformServers && !a.IsMulticast() && !a.IsUnspecified() && !a.IsLoopback() && !a.Is4In6() {
			c.servers = append(c.servers, a)
		}
	}
	return !slices.Equal(before, c.servers)
}

// Servers are the name servers, the first to be asked first.
func (c *Inform) Servers() []netip.Addr { return c.servers }
