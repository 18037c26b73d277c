package usernet

import (
	"iter"
	"sync/atomic"

	"loam/internal/counter"
)

// Counter identifies one counter of the gateway. The gateway counts flows, datagrams and
// messages; its stack counts packets (Gateway.StackCounters).
type Counter uint8

// The counters. counterNames has their printed names in the same order.
const (
	TCPAttempts    Counter = iota // connection attempts of the guest
	TCPConnected                  // attempts that succeeded
	TCPDenied                     // attempts refused: the guest may not reach the destination
	TCPFailed                     // attempts that the host refused or did not answer
	TCPDialLimit                  // attempts refused: too many concurrent attempts
	TCPLimit                      // attempts refused: too many connections
	TCPResets                     // connections that the guest or the host reset
	TCPLingered                   // connections aborted: the guest did not acknowledge the rest of its stream in time
	TCPBytesOut                   // bytes to the host
	TCPBytesIn                    // bytes to the guest
	UDPFlows                      // flows begun by the guest
	UDPDenied                     // datagrams dropped: the guest may not reach the destination
	UDPFailed                     // flows for which the host gave no socket
	UDPEvicted                    // flows replaced by newer ones
	UDPExpired                    // flows closed after being idle
	UDPOut                        // datagrams to the host
	UDPIn                         // datagrams to the guest
	UDPRefused                    // datagrams that the host's network reported as refused (ICMP)
	UDPDropped                    // datagrams that could not be forwarded
	PingOut                       // echo requests sent
	PingIn                        // replies delivered to the guest
	PingDenied                    // requests dropped: the guest may not reach the destination
	PingNoSocket                  // requests dropped: the host does not permit ICMP sockets
	PingFailed                    // requests that the host could not send
	PingLost                      // unanswered requests replaced by newer ones
	PingStray                     // ICMP replies that match no request
	DNSQueries                    //
	DNSAnswered                   // queries answered by a server of the host
	DNSLocal                      // queries answered by the gateway: names below loam.internal
	DNSMalformed                  // malformed queries
	DNSUnsupported                // queries of types that are not forwarded
	DNSLimit                      // queries refused: too many concurrent queries
	DNSFailed                     // queries that no server answered
	DNSMismatched                 // replies that match no query
	DNSTruncated                  // replies truncated to the guest's UDP limit
	DNSDropped                    // replies that could not be sent
	DHCPReceived                  //
	DHCPSent                      //
	DHCPMalformed                 //
	DHCPIgnored                   // messages to which a DHCP server does not reply
	PublishTCP                    // connections from the host to the guest
	PublishHanded                 // published connections that were passed to the program as descriptors (Config.Program)
	PublishFailed                 // published connections that the guest refused
	PublishLimit                  // published connections refused: too many connections
	PublishUDP                    // UDP flows from the host to the guest
	numCounters
)

var counterNames = [numCounters]string{
	"tcp.attempts", "tcp.connected", "tcp.denied", "tcp.failed", "tcp.dial_limit", "tcp.limit", "tcp.resets",
	"tcp.lingered", "tcp.bytes_out", "tcp.bytes_in",
	"udp.flows", "udp.denied", "udp.failed", "udp.evicted", "udp.expired", "udp.out", "udp.in", "udp.refused",
	"udp.dropped",
	"ping.out", "ping.in", "ping.denied", "ping.no_socket", "ping.failed", "ping.lost", "ping.stray",
	"dns.queries", "dns.answered", "dns.local", "dns.malformed", "dns.unsupported", "dns.limit", "dns.failed",
	"dns.mismatched", "dns.truncated", "dns.dropped",
	"dhcp.received", "dhcp.sent", "dhcp.malformed", "dhcp.ignored",
	"publish.tcp", "publish.handed", "publish.failed", "publish.limit", "publish.udp",
}

// String returns the printed name, in the form "service.event".
func (c Counter) String() string { return counter.Name(counterNames[:], c) }

// Counters is a snapshot of all counters since the gateway was created.
type Counters [numCounters]uint64

// Get returns the value of one counter.
func (c *Counters) Get(which Counter) uint64 { return c[which] }

// All iterates over all counters, including those that are zero.
func (c *Counters) All() iter.Seq2[Counter, uint64] { return counter.All[Counter](c[:]) }

// String lists the nonzero counters, one "name value" per line.
func (c *Counters) String() string { return counter.List[Counter](c[:]) }

// tally holds the counters of a gateway. Several goroutines increment them.
type tally [numCounters]atomic.Uint64

func (t *tally) count(which Counter)      { t[which].Add(1) }
func (t *tally) add(which Counter, n int) { t[which].Add(uint64(n)) }

func (t *tally) snapshot() (c Counters) {
	for i := range t {
		c[i] = t[i].Load()
	}
	return c
}
