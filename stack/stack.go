package stack

import (
	crand "crypto/rand"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/internal/crew"
	"loam/stack/tcp"
)

// Stack is one TCP/IP host. Its methods may be called from several goroutines.
//
// It begins with the interface "lo" (127.0.0.1/8, ::1) and
// nothing else: Attach gives it a link, AddAddress or DHCP an address, AddRoute
// a way out.
type Stack struct {
	config Config
	epoch  time.Time // shards count time from here
	seed   uint64    // of the flow hash

	shards []*shard
	tables atomic.Pointer[tables] // read by everybody, replaced under mu

	ports     ports    // which local addresses and ports are taken
	key       *tcp.Key // of initial sequence numbers and SYN cookies
	ids       identifications
	paths     pathMTUs
	errors    errorLimit
	forwarder Forwarder
	forwards  atomic.Int32                 // requests that the forwarder is deciding
	raws      atomic.Pointer[[]*RawConn]   // the raw sockets, replaced under mu; nil: there are none
	linkConns atomic.Pointer[[]*LinkConn]  // the sockets for frames, in the same way
	dns       atomic.Pointer[[]netip.Addr] // see SetDNS
	tally     tally                        // what programs count; shards and receivers have their own

	mu        sync.Mutex // guards changes of configuration, and what follows
	closed    bool
	nextIndex int
	retired   tally // of receivers that have ended

	crew crew.Crew // every goroutine of the stack
}

// New makes a stack.
func New(config Config) *Stack {
	s := &Stack{
		config: config.withDefaults(),
		epoch:  time.Now(),
		seed:   rand.Uint64(),
		ports:  newPorts(),
		key:    newKey(),
	}
	s.tables.Store(&tables{})
	s.paths.init()
	s.errors.init()
	s.ids.init()
	for i := range s.config.Shards {
		s.shards = append(s.shards, newShard(s, i))
	}
	for _, sh := range s.shards {
		s.crew.Start(sh.loop)
	}
	s.attachLoopback()
	return s
}

// now is the time that protocol machines are given: since the stack was made.
func (s *Stack) now() tcp.Time { return time.Since(s.epoch) }

// Counters returns a snapshot.
func (s *Stack) Counters() Counters {
	var c Counters
	s.retired.addTo(&c)
	s.tally.addTo(&c)
	for _, sh := range s.shards {
		sh.addCounters(&c)
	}
	for _, ifc := range s.tables.Load().interfaces {
		ifc.addCounters(&c)
	}
	return c
}

// CountersIPv6 has how much of Counters was of IPv6, of what is counted of both versions of IP;
// but for what was not put together (IPReassembly), and TCP.
func (s *Stack) CountersIPv6() (c Counters) {
	s.retired.addIPv6To(&c)
	s.tally.addIPv6To(&c)
	for _, sh := range s.shards {
		sh.tally.addIPv6To(&c)
	}
	for _, ifc := range s.tables.Load().interfaces {
		for _, r := range ifc.receivers {
			r.tally.addIPv6To(&c)
		}
	}
	return c
}

// addCounters adds what the shard and its machines have counted.
func (sh *shard) addCounters(c *Counters) {
	sh.tally.addTo(c)
	var dropped uint64
	var machines tcp.Counters
	count := func(sh *shard) {
		dropped = reassemblyDrops(sh.reassembly.Counters())
		machines = sh.tcpCounts
	}
	if !sh.request(count) { // it has ended: nobody changes them any more
		count(sh)
	}
	c[IPReassembly] += dropped
	for from, to := range machineCounters {
		c[to] += machines[from]
	}
}

// shardFor is the owner of a flow.
func (s *Stack) shardFor(a, b netip.AddrPort) *shard {
	return s.shards[shardOf(a.Addr(), b.Addr(), a.Port(), b.Port(), s.seed, len(s.shards))]
}

// newKey makes a key that nobody can guess.
func newKey() *tcp.Key {
	var b [16]byte
	crand.Read(b[:]) // never fails
	return tcp.NewKey(b)
}
