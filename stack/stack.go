package stack

import (
	crand "crypto/rand"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/internal/crew"
	"loam/stack/fastopen"
	"loam/stack/flood"
	"loam/stack/shared"
	"loam/stack/tcp"
)

// Stack is one TCP/IP host. Its methods are safe for concurrent use.
//
// A new stack has only the interface "lo" (127.0.0.1/8, ::1). Attach adds a link,
// AddAddress or DHCP an address, and AddRoute a route.
type Stack struct {
	config Config
	epoch  time.Time // the time from which tcp.Time counts
	seed   uint64    // random seed of the flow hash

	shards []*shard
	tables atomic.Pointer[tables] // read without a lock, replaced under mu

	ports     *shared.Ports  // local addresses and ports in use
	key       *tcp.Key       // secret key for initial sequence numbers and SYN cookies
	fastKeys  *fastopen.Keys // keys for cookies of TCP Fast Open of listeners without keys of their own
	servers   fastopen.Cache // cookies of TCP Fast Open that this host has received
	ids       shared.Identifications
	paths     shared.PathMTUs
	searches  shared.Searches // path MTUs found by probes
	errors    shared.ErrorLimit
	forwarder Forwarder
	forwards  atomic.Int32                 // requests that the forwarder is deciding
	raws      atomic.Pointer[[]*RawConn]   // raw sockets, replaced under mu; nil: none
	linkConns atomic.Pointer[[]*LinkConn]  // link-layer sockets, replaced under mu; nil: none
	dns       atomic.Pointer[[]netip.Addr] // name servers: see SetDNS
	tally     tally                        // counts of programs' goroutines; shards and receivers have tallies of their own

	peers        flood.Peers
	pressedUntil atomic.Int64 // the stack counts as overloaded until this tcp.Time; set by receivers: see notePressure

	mu        sync.Mutex // guards configuration changes and the fields below
	closed    bool
	nextIndex int
	retired   tally // counters of receivers that have ended

	crew crew.Crew // all goroutines of the stack
}

// New creates a stack and starts its goroutines. The caller must call Close.
func New(config Config) *Stack {
	s := &Stack{
		config: config.withDefaults(),
		epoch:  time.Now(),
		seed:   rand.Uint64(),
		ports:  shared.NewPorts(),
		key:    tcp.NewKey(randomKey()),

		fastKeys: newFastKeys(),
	}
	s.tables.Store(&tables{})
	s.paths.Init()
	s.searches.Init(s.config.TCP.Probing)
	s.errors.Init()
	s.ids.Init()
	for i := range s.config.Shards {
		s.shards = append(s.shards, newShard(s, i))
	}
	for _, sh := range s.shards {
		s.crew.Start(sh.loop)
	}
	s.attachLoopback()
	return s
}

// now returns the time since the stack was created. The stack measures all times with this clock. Ports returns the ports in use.
func (s *Stack) now() tcp.Time        { return time.Since(s.epoch) }
func (s *Stack) Ports() *shared.Ports { return s.ports }

// MTUSearches returns the settings of searches for path MTUs without ICMP (RFC 4821), and their results.
func (s *Stack) MTUSearches() *shared.Searches { return &s.searches }

// Counters returns a snapshot of all counters.
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

// CountersIPv6 returns the IPv6 share of those counters that cover both versions of IP.
// IPReassembly and the TCP counters are not split by version and are not included.
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

// addCounters adds the counters of the shard, of its TCP connections and of its reassembly to c.
func (sh *shard) addCounters(c *Counters) {
	sh.tally.addTo(c)
	var dropped uint64
	var machines tcp.Counters
	count := func(sh *shard) {
		dropped = reassemblyDrops(sh.reassembly.Counters())
		machines = sh.tcpCounts
	}
	if !sh.request(count) { // the shard has ended: its counters no longer change
		count(sh)
	}
	c[IPReassembly] += dropped
	for from, to := range machineCounters {
		c[to] += machines[from]
	}
}

// shardFor returns the shard that owns a flow. The hash is symmetric in a and b.
func (s *Stack) shardFor(a, b netip.AddrPort) *shard {
	return s.shards[shared.ShardOf(a.Addr(), b.Addr(), a.Port(), b.Port(), s.seed, len(s.shards))]
}

// randomKey returns random bytes for a key.
func randomKey() (b [16]byte) {
	crand.Read(b[:]) // crand.Read never fails
	return b
}
