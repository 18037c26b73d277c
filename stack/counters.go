package stack

import (
	"iter"
	"net/netip"
	"sync/atomic"

	"loam/internal/counter"
	"loam/stack/tcp"
)

// Counter names one thing that the stack counts. Every packet that is not
// delivered is counted by the reason why, under the protocol that dropped it.
type Counter uint8

// Counters. The names that people see are in counterNames, in the same order.
const (
	EthReceived Counter = iota
	EthSent
	EthMalformed        // header truncated, 802.3 length framing, too many tags, sent by a group
	EthNotForUs         // unicast to another station
	EthUnknownType      // no protocol bound to the EtherType
	EthTagged           // a VLAN that is not configured
	EthNoRoom           // ARP and DHCP packets dropped because the device was full
	ARPReceived         //
	ARPSent             //
	ARPMalformed        //
	ARPOverflow         // the neighbour cache's owner could not keep up
	ARPConflict         // somebody else claims an address of ours
	NDReceived          //
	NDSent              //
	NDMalformed         // a field, an option, or a hop limit that it did not begin with
	NDOverflow          // the neighbour cache's owner could not keep up
	NDConflict          // somebody else claims an IPv6 address of ours
	RedirectFollowed    // better first hops that routers have named
	RedirectIgnored     // the interface is the loopback, a router's or the gateway's
	RedirectUnsent      // IPv4: about no packet that a socket may have sent
	RedirectStranger    // not from the first hop of the destination
	RedirectOffLink     // to an address that is not another host's on the link
	RedirectOverflow    // too many at once
	GroupReceived       // messages of IGMP and MLD
	GroupSent           //
	GroupMalformed      // a field, a length, or the checksum of IGMP
	GroupIgnored        // what a host has no use for, or cannot believe
	GroupOverflow       // the interface's owner could not keep up
	NeighResolved       //
	NeighFailed         // no answer: the packets that waited were dropped
	NeighOverflow       // too many packets waited for one neighbour; the oldest went
	IPReceived          //
	IPSent              //
	IPDelivered         // handed to a protocol
	IPMalformed         // header, length or option
	IPChecksum          //
	IPNotForUs          // destination is not an address of ours
	IPNotMember         // to a multicast group that this host is not in
	IPMartian           // source or destination that cannot be on this interface
	IPSourceRoute       // source-routed: refused
	IPDiscarded         // IPv6: an extension header says so, or is malformed
	IPProblem           // IPv6: headers that are not known, answered with "parameter problem"
	IPNoProtocol        // answered with "protocol unreachable", or "parameter problem"
	IPNoRoute           //
	IPFragments         // fragments received
	IPReassembled       // datagrams put together
	IPReassembly        // fragments dropped: overlap, time, memory
	IPFragmented        // datagrams cut up for sending
	IPFragsSent         //
	IPOverflow          // the shard's queue for forwarded packets was full
	ICMPReceived        //
	ICMPSent            //
	ICMPMalformed       //
	ICMPChecksum        //
	ICMPEcho            // echo requests answered
	ICMPEchoReply       // replies delivered to a ping
	ICMPErrors          // errors received and delivered to a socket
	ICMPIgnored         // messages of other kinds, replies and errors that nobody waits for
	ICMPFiltered        // a ping's filter did not want it
	ICMPOverflow        // a ping's receive buffer was full
	ICMPErrorsSent      //
	ICMPLimited         // errors not sent because of the rate limit
	ICMPNoRoom          // answers dropped because the device was full
	RawReceived         // copies given to raw sockets
	RawSent             //
	RawFiltered         // a raw socket's filter did not want the copy, or its checksum was wrong
	RawOverflow         // a raw socket's receive buffer was full
	LinkReceived        // copies of frames given to sockets of links
	LinkSent            //
	LinkFiltered        // such a socket's filter did not want the copy
	LinkOverflow        // such a socket's receive buffer was full
	LinkNoRoom          // frames of such sockets dropped because the device was full
	UDPReceived         //
	UDPSent             //
	UDPMalformed        //
	UDPChecksum         //
	UDPNoPort           // nobody listens: answered with "port unreachable", unless it was sent to all
	UDPFiltered         // the socket's filter did not want it
	UDPOverflow         // the socket's receive buffer was full
	TCPReceived         //
	TCPSent             //
	TCPMalformed        //
	TCPChecksum         //
	TCPNoPort           // answered with a reset
	TCPActiveOpens      //
	TCPPassiveOpens     //
	TCPEstablished      // connections that reached ESTABLISHED
	TCPResetsSent       //
	TCPResets           // connections that the peer reset
	TCPTimeouts         // connections given up
	TCPRetransmits      // segments sent again
	TCPLossTimeouts     // retransmission timeouts
	TCPFastRecoveries   // times that loss was found without a timeout
	TCPTailProbes       // segments sent because acknowledgments did not come (RFC 8985)
	TCPUndos            // reductions of a congestion window taken back: nothing had been lost
	TCPOutOfOrder       // segments that arrived behind a gap
	TCPDuplicates       // segments that had arrived before
	TCPBacklogFull      // connection attempts dropped: the program does not accept fast enough
	TCPCookiesSent      // SYNs answered with a cookie, without state
	TCPCookiesBad       // acknowledgements without a connection whose cookie is wrong
	TCPNoRoom           // resets dropped because the device was full
	TCPTimeWaitOverflow // connections that left TIME-WAIT early: there were too many
	TCPOrphanOverflow   // connections reset that no program had any more: there were too many
	ForwardOverflow     // connection attempts dropped: too many wait for the forwarder
	IPv6BytesReceived   // of packets of IPv6 that are counted in IPReceived
	IPv6BytesSent       // of packets of IPv6
	numCounters
)

var counterNames = [numCounters]string{
	"eth.received", "eth.sent", "eth.malformed", "eth.not_for_us", "eth.unknown_type", "eth.tagged",
	"eth.no_room",
	"arp.received", "arp.sent", "arp.malformed", "arp.overflow", "arp.conflict",
	"nd.received", "nd.sent", "nd.malformed", "nd.overflow", "nd.conflict",
	"redirect.followed", "redirect.ignored", "redirect.unsent", "redirect.stranger", "redirect.off_link", "redirect.overflow",
	"group.received", "group.sent", "group.malformed", "group.ignored", "group.overflow",
	"neigh.resolved", "neigh.failed", "neigh.overflow",
	"ip.received", "ip.sent", "ip.delivered", "ip.malformed", "ip.checksum", "ip.not_for_us", "ip.not_member", "ip.martian",
	"ip.source_route", "ip.discarded", "ip.problem", "ip.no_protocol", "ip.no_route", "ip.fragments", "ip.reassembled", "ip.reassembly_dropped",
	"ip.fragmented", "ip.fragments_sent", "ip.overflow",
	"icmp.received", "icmp.sent", "icmp.malformed", "icmp.checksum", "icmp.echo", "icmp.echo_reply", "icmp.errors",
	"icmp.ignored", "icmp.filtered", "icmp.overflow", "icmp.errors_sent", "icmp.rate_limited", "icmp.no_room",
	"raw.received", "raw.sent", "raw.filtered", "raw.overflow",
	"link.received", "link.sent", "link.filtered", "link.overflow", "link.no_room",
	"udp.received", "udp.sent", "udp.malformed", "udp.checksum", "udp.no_port", "udp.filtered", "udp.overflow",
	"tcp.received", "tcp.sent", "tcp.malformed", "tcp.checksum", "tcp.no_port", "tcp.active_opens",
	"tcp.passive_opens", "tcp.established", "tcp.resets_sent", "tcp.resets", "tcp.timeouts", "tcp.retransmits",
	"tcp.loss_timeouts", "tcp.fast_recoveries", "tcp.tail_probes", "tcp.undos", "tcp.out_of_order", "tcp.duplicates",
	"tcp.backlog_full", "tcp.cookies_sent", "tcp.cookies_bad", "tcp.no_room", "tcp.time_wait_overflow", "tcp.orphan_overflow",
	"forward.overflow",
	"ip6.bytes_received", "ip6.bytes_sent",
}

// machineCounters are those that the TCP machines of a shard count.
var machineCounters = map[tcp.Counter]Counter{
	tcp.Retransmits: TCPRetransmits, tcp.Timeouts: TCPLossTimeouts, tcp.FastRecoveries: TCPFastRecoveries,
	tcp.TailProbes: TCPTailProbes, tcp.Undos: TCPUndos, tcp.OutOfOrderIn: TCPOutOfOrder, tcp.DuplicatesIn: TCPDuplicates,
}

// String is the name, "protocol.thing".
func (c Counter) String() string { return counter.Name(counterNames[:], c) }

// Counters is a snapshot of all counters since the stack was made.
type Counters [numCounters]uint64

// Get returns one.
func (c *Counters) Get(which Counter) uint64 { return c[which] }

// All yields every counter, zero or not.
func (c *Counters) All() iter.Seq2[Counter, uint64] { return counter.All[Counter](c[:]) }

// String lists the counters that are not zero, one "name value" a line.
func (c *Counters) String() string { return counter.List[Counter](c[:]) }

// tally is a set of counters with one goroutine that adds, as a rule, and any
// number that read. Each shard and each receiver has its own, so that adding
// costs an uncontended atomic. What is known to be about IPv6 is counted apart, behind
// the others.
type tally [2 * numCounters]atomic.Uint64

func (t *tally) count(which Counter)          { t[which].Add(1) }
func (t *tally) count6(which Counter)         { t.add6(which, 1) }
func (t *tally) add(which Counter, n uint64)  { t[which].Add(n) }
func (t *tally) add6(which Counter, n uint64) { t[numCounters+which].Add(n) }

// countBy counts what both versions of IP have, of a packet from or to an address.
func (t *tally) countBy(a netip.Addr, which Counter) {
	if a.Is6() {
		t.count6(which)
		return
	}
	t.count(which)
}

// countSent counts an IP packet of n bytes to an address.
func (t *tally) countSent(to netip.Addr, n int) {
	t.countBy(to, IPSent)
	if to.Is6() {
		t.add6(IPv6BytesSent, uint64(n))
	}
}

// merge adds all that another has counted.
func (t *tally) merge(from *tally) {
	for i := range t {
		t[i].Add(from[i].Load())
	}
}

func (t *tally) addTo(c *Counters) {
	for i := range c {
		c[i] += t[i].Load() + t[int(numCounters)+i].Load()
	}
}

func (t *tally) addIPv6To(c *Counters) {
	for i := range c {
		c[i] += t[int(numCounters)+i].Load()
	}
}
