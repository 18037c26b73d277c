package usernet

import (
	"iter"
	"sync/atomic"

	"loam/internal/counter"
)

// Counter names one thing that the gateway counts. What it counts is about
// flows, datagrams and messages; packets are counted by its stack
// (Gateway.StackCounters).
type Counter uint8

// Counters. The names that people see are in counterNames, in the same order.
const (
	TCPAttempts    Counter = iota // connections that the guest asked for
	TCPConnected                  // of these, the ones that came to be
	TCPDenied                     // the destination is out of the guest's reach
	TCPFailed                     // the host refused, or did not answer
	TCPDialLimit                  // refused: too many attempts at once
	TCPLimit                      // refused: too many connections
	TCPResets                     // connections that one side reset
	TCPLingered                   // given up: the guest did not read the end of its stream
	TCPBytesOut                   // to the host
	TCPBytesIn                    // to the guest
	UDPFlows                      // flows that the guest began
	UDPDenied                     // the destination is out of the guest's reach
	UDPFailed                     // no socket for a flow: the host refused
	UDPEvicted                    // flows that made room for newer ones
	UDPExpired                    // flows that were idle for too long
	UDPOut                        // datagrams to the host
	UDPIn                         // datagrams to the guest
	UDPRefused                    // datagrams that the host's network refused (ICMP)
	UDPDropped                    // datagrams that could not be sent on
	PingOut                       // echo requests sent
	PingIn                        // replies passed to the guest
	PingDenied                    // the destination is out of the guest's reach
	PingNoSocket                  // the host does not let us ping
	PingFailed                    // the host refused to send
	PingLost                      // requests that made room for newer ones, unanswered
	PingStray                     // ICMP messages that answer nothing
	DNSQueries                    //
	DNSAnswered                   // by a server of the host
	DNSLocal                      // answered here: names of the gateway
	DNSMalformed                  // queries that make no sense
	DNSUnsupported                // queries of a kind that is not forwarded
	DNSLimit                      // refused: too many queries at once
	DNSFailed                     // no server answered
	DNSMismatched                 // answers that fit no question
	DNSTruncated                  // answers cut to what the guest takes by UDP
	DNSDropped                    // answers that could not be sent
	DHCPReceived                  //
	DHCPSent                      //
	DHCPMalformed                 //
	DHCPIgnored                   // messages that a server does not answer
	PublishTCP                    // connections from the host to the guest
	PublishHanded                 // of these, the ones that were handed to the program (Config.Program)
	PublishFailed                 // of these, the ones that the guest refused
	PublishLimit                  // refused: too many connections
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

// String is the name, "service.thing".
func (c Counter) String() string { return counter.Name(counterNames[:], c) }

// Counters is a snapshot of all counters since the gateway was made.
type Counters [numCounters]uint64

// Get returns one.
func (c *Counters) Get(which Counter) uint64 { return c[which] }

// All yields every counter, zero or not.
func (c *Counters) All() iter.Seq2[Counter, uint64] { return counter.All[Counter](c[:]) }

// String lists the counters that are not zero, one "name value" a line.
func (c *Counters) String() string { return counter.List[Counter](c[:]) }

// tally is what the gateway's goroutines add to.
type tally [numCounters]atomic.Uint64

func (t *tally) count(which Counter)      { t[which].Add(1) }
func (t *tally) add(which Counter, n int) { t[which].Add(uint64(n)) }

func (t *tally) snapshot() (c Counters) {
	for i := range t {
		c[i] = t[i].Load()
	}
	return c
}
