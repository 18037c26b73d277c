package neigh

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/internal/list"
	"loam/stack/timer"
	"loam/wire"
)

// Never is the deadline of a machine that waits for nothing.
const Never = timer.Never

// Answer is the outcome of a Lookup.
type Answer uint8

// Answers.
const (
	Pending     Answer = iota // an Event will tell
	Found                     // the MAC is good to use
	Unreachable               // there was no answer a short while ago
)

// EventKind says what an Event is about.
type EventKind uint8

// Kinds of events. The last two are about addresses of our own. Whoever keeps
// copies of MACs, to publish them for instance, drops them at Failed and Gone.
const (
	Resolved EventKind = iota + 1 // what waits for Addr can go to MAC
	Failed                        // Addr does not answer: what waits for it cannot be sent
	Changed                       // Addr is at another MAC now
	Gone                          // Addr has left the table for another reason; nothing waits for it
	Ready                         // nobody objects to our using Addr
	Conflict                      // another host, at MAC, uses our Addr
)

// Event is news for the owner.
type Event struct {
	Kind EventKind
	Addr netip.Addr
	MAC  wire.MAC
}

// Counters count what happened, since the beginning.
type Counters struct {
	Solicited uint64 // questions sent
	Resolved  uint64 // addresses found
	Failed    uint64 // addresses given up
	Changed   uint64 // MACs replaced by other ones
	Locked    uint64 // contradicting MACs ignored: the one we have is static, or too new
	Evicted   uint64 // entries that gave way to others
	Refused   uint64 // entries not made since all others have more right to their place
	Unmatched uint64 // news about addresses that we do not know
}

// Cache maps IP addresses to MACs: see the package comment for the states. After
// every call that may change something, the owner takes what there is from
// Event and Solicit; it calls Advance when Deadline has come.
type Cache struct {
	cfg      Config
	table    map[netip.Addr]*neighbour
	static   int
	ranks    [proven + 1]list.List[neighbour] // everything but the static ones, the least recently used first
	due      list.List[neighbour]             // to be asked for
	wheel    timer.Wheel
	events   []Event
	random   *rand.Rand
	counters Counters
}

// neighbour is one entry of the table.
type neighbour struct {
	addr    netip.Addr
	mac     wire.MAC // valid in all states but Incomplete and Failed
	state   State
	rank    rank
	asked   int           // solicitations sent since Incomplete or Probe began
	changed time.Duration // when mac was set
	timer   timer.Entry
	use     list.Node[neighbour] // on ranks[rank]
	turn    list.Node[neighbour] // on due
}

// rank is how much right a neighbour has to its place: the lowest goes first.
type rank uint8

const (
	told   rank = iota // somebody told us, and it has never answered
	trying             // we want to know
	proven             // it has answered
)

// NewCache returns an empty cache.
func NewCache(cfg Config) *Cache {
	c := &Cache{
		cfg:    cfg.withDefaults(),
		table:  make(map[netip.Addr]*neighbour),
		random: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)),
	}
	return c
}

// Lookup returns the MAC of addr, for a packet that is about to go there. If it
// is Pending, a Resolved or Failed event about addr will follow.
func (c *Cache) Lookup(now time.Duration, addr netip.Addr) (wire.MAC, Answer) {
	n := c.table[addr]
	if n == nil {
		c.enter(now, c.add(addr, trying), Incomplete)
		return wire.MAC{}, Pending
	}
	if n.state == Static {
		return n.mac, Found
	}
	c.ranks[n.rank].PushBack(&n.use)
	switch n.state {
	case Incomplete:
		return wire.MAC{}, Pending
	case Negative:
		return wire.MAC{}, Unreachable
	case Stale:
		c.enter(now, n, Delay)
	}
	return n.mac, Found
}

// Set makes a static entry, in the place of any other for the same address.
func (c *Cache) Set(addr netip.Addr, mac wire.MAC) {
	n := c.table[addr]
	switch {
	case n == nil:
		n = &neighbour{addr: addr}
		c.table[addr] = n
	case n.state == Incomplete:
		c.emit(Resolved, addr, mac)
		c.idle(n)
	case n.state == Static:
		c.static--
	default:
		c.idle(n)
	}
	if n.mac != mac && !n.mac.IsZero() {
		c.emit(Changed, addr, mac)
	}
	n.mac, n.state = mac, Static
	c.static++
}

// Remove forgets addr, whether static or not.
func (c *Cache) Remove(addr netip.Addr) {
	n := c.table[addr]
	if n == nil {
		return
	}
	if n.state == Static {
		c.static--
		delete(c.table, addr)
		c.emit(Gone, addr, n.mac)
		return
	}
	c.drop(n)
}

// Event returns the next event, until there is none.
func (c *Cache) Event() (Event, bool) {
	if len(c.events) == 0 {
		return Event{}, false
	}
	e := c.events[0]
	if c.events = c.events[1:]; len(c.events) == 0 {
		c.events = nil
	}
	return e, true
}

func (c *Cache) emit(kind EventKind, addr netip.Addr, mac wire.MAC) {
	c.events = append(c.events, Event{kind, addr, mac})
}

// SetTimes changes how long a confirmation is good on average, and the time between
// solicitations, from the next of each on; zero leaves it as it is (RFC 4861 section 6.3.4).
func (c *Cache) SetTimes(reachable, retransmit time.Duration) {
	if reachable != 0 {
		c.cfg.Reachable = reachable
	}
	if retransmit != 0 {
		c.cfg.Retransmit = retransmit
		c.cfg.Negative = max(c.cfg.Negative, retransmit)
	}
}

// Counters returns the counters.
func (c *Cache) Counters() Counters { return c.counters }

// Entry is what Entries shows of a neighbour.
type Entry struct {
	Addr  netip.Addr
	MAC   wire.MAC // zero in Incomplete and Negative
	State State
}

// Entries lists the table, by address.
func (c *Cache) Entries() []Entry {
	all := make([]Entry, 0, len(c.table))
	for _, n := range c.table {
		all = append(all, Entry{n.addr, n.mac, n.state})
	}
	slices.SortFunc(all, func(a, b Entry) int { return a.Addr.Compare(b.Addr) })
	return all
}

// add makes an entry of rank r, which may push out another one. It returns nil if
// there is none that has to give way to it; to trying, one always has.
func (c *Cache) add(addr netip.Addr, r rank) *neighbour {
	if len(c.table)-c.static >= c.cfg.Size && !c.evict(r) {
		c.counters.Refused++
		return nil
	}
	n := &neighbour{addr: addr, rank: r}
	n.timer.Owner, n.use.Owner, n.turn.Owner = n, n, n
	c.table[addr] = n
	c.ranks[r].PushBack(&n.use)
	return n
}

// evict makes room for an entry of rank r: for what we are told only among its
// like, for what we want to know among all.
func (c *Cache) evict(r rank) bool {
	last := proven
	if r == told {
		last = told
	}
	for i := told; i <= last; i++ {
		if n := c.ranks[i].Front(); n != nil {
			c.counters.Evicted++
			c.drop(n)
			return true
		}
	}
	return false
}

// drop removes n, which is not static, from everything. What waits for it has
// failed.
func (c *Cache) drop(n *neighbour) {
	switch n.state {
	case Incomplete:
		c.fail(n)
	case Reachable, Stale, Delay, Probe:
		c.emit(Gone, n.addr, n.mac)
	}
	c.idle(n)
	delete(c.table, n.addr)
}

// idle takes n off the lists and the wheel.
func (c *Cache) idle(n *neighbour) {
	n.use.Remove()
	n.turn.Remove()
	c.wheel.Cancel(&n.timer)
}

func (c *Cache) fail(n *neighbour) {
	c.counters.Failed++
	c.emit(Failed, n.addr, wire.MAC{})
}

func (c *Cache) setRank(n *neighbour, r rank) {
	n.rank = r
	c.ranks[r].PushBack(&n.use)
}
