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

// Never is the deadline of a Cache without a running timer.
const Never = timer.Never

// Answer is the result of a Lookup.
type Answer uint8

// Values of Answer: results of Lookup.
const (
	Pending     Answer = iota // the address is being resolved; an Event will report the result
	Found                     // the MAC is valid
	Unreachable               // the neighbour has not answered a short time ago
)

// EventKind is the kind of an Event.
type EventKind uint8

// Kinds of events. Ready and Conflict concern our own addresses. An owner that keeps copies of MACs must
// remove them on Failed and Gone.
const (
	Resolved EventKind = iota + 1 // packets waiting for Addr can be sent to MAC
	Failed                        // Addr does not answer: packets waiting for it cannot be sent
	Changed                       // the MAC of Addr has changed
	Gone                          // the entry of Addr was removed for another reason; no packet waits for it
	Ready                         // our own address Addr can be used: no other host uses it
	Conflict                      // another host, with MAC, uses our own address Addr
)

// Event notifies the owner of the cache, the loop of an interface, that an entry has changed.
type Event struct {
	Kind EventKind
	Addr netip.Addr
	MAC  wire.MAC
}

// Counters count events since the creation of the Cache.
type Counters struct {
	Solicited uint64 // number of solicitations sent
	Resolved  uint64 // number of addresses resolved
	Failed    uint64 // number of addresses that did not answer
	Changed   uint64 // MACs that were replaced by different ones
	Locked    uint64 // contradicting MACs that were ignored because the entry is static or has changed too recently
	Evicted   uint64 // entries that were evicted to make room
	Refused   uint64 // entries that were not created because all others have a higher rank
	Unmatched uint64 // packets about addresses that have no entry
}

// Cache maps IP addresses to MACs; the package comment describes the states. After every call that may change
// something, the owner calls Event and Solicit until both return false. It calls Advance when Deadline has
// passed.
type Cache struct {
	cfg      Config
	table    map[netip.Addr]*neighbour
	static   int
	ranks    [proven + 1]list.List[neighbour] // all entries except static ones, by rank, the least recently used first
	due      list.List[neighbour]             // entries for which a solicitation is due
	wheel    timer.Wheel
	events   []Event
	random   *rand.Rand
	counters Counters
}

// neighbour is an entry of the table.
type neighbour struct {
	addr    netip.Addr
	mac     wire.MAC // link-layer address; not valid in Incomplete and Negative
	state   State
	rank    rank
	asked   int           // number of solicitations sent in Incomplete or Probe
	changed time.Duration // time at which mac was last set
	timer   timer.Entry
	use     list.Node[neighbour] // element of Cache.ranks[rank]
	turn    list.Node[neighbour] // element of Cache.due
}

// rank determines the order of eviction: the lowest rank goes first.
type rank uint8

const (
	unsolicited rank = iota // learned from an unsolicited packet; the neighbour has never answered us
	trying                  // this host is resolving the address
	proven                  // the neighbour has answered us
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

// Lookup returns the MAC of addr, for a packet that is about to be sent there. If the answer is Pending, an event Resolved
// or Failed for addr follows.
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

// Set creates a static entry. It replaces any other entry for the same address.
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

// Remove removes the entry of addr, static or not.
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

// Event returns the next event. It returns false if there is none.
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

// SetTimes changes the average validity of a confirmation and the time between solicitations (RFC 4861
// section 6.3.4). Each applies from its next use. Zero leaves a value unchanged.
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

// Entry describes a neighbour, as returned by Entries.
type Entry struct {
	Addr  netip.Addr
	MAC   wire.MAC // zero in the states Incomplete and Negative
	State State
}

// Entries returns the table, sorted by address.
func (c *Cache) Entries() []Entry {
	all := make([]Entry, 0, len(c.table))
	for _, n := range c.table {
		all = append(all, Entry{n.addr, n.mac, n.state})
	}
	slices.SortFunc(all, func(a, b Entry) int { return a.Addr.Compare(b.Addr) })
	return all
}

// add creates an entry of rank r and evicts another one if the table is full. It returns nil if no entry may
// be evicted, which cannot happen for rank trying.
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

// evict makes room for an entry of rank r. An unsolicited entry evicts only another unsolicited entry; others evict the
// lowest rank.
func (c *Cache) evict(r rank) bool {
	last := proven
	if r == unsolicited {
		last = unsolicited
	}
	for i := unsolicited; i <= last; i++ {
		if n := c.ranks[i].Front(); n != nil {
			c.counters.Evicted++
			c.drop(n)
			return true
		}
	}
	return false
}

// drop removes n, which must not be static. If packets wait for it, they fail.
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

// idle removes n from the lists and from the timing wheel.
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
