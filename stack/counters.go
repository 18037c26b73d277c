package stack

import (
	"iter"
	"net/netip"
	"sync/atomic"

	"loam/internal/counter"
	"loam/stack/tcp"
)

// Counter identifies one counter of the stack. Every packet that is not delivered is
// counted by reason, under the protocol that dropped it.
type Counter uint8

// The counters. Each counts packets, frames or messages of the protocol in its name, unless its comment says otherwise.
// counterNames has their printed names in the same order.
const (
	EthReceived Counter = iota
	EthSent
	EthMalformed        // frames with a truncated header, 802.3 length framing, too many tags, or a group address as source
	EthNotForUs         // unicast frames to another station
	EthUnknownType      // frames whose EtherType belongs to no protocol of the stack
	EthTagged           // frames whose tag names a VLAN that is not configured
	EthNoRoom           // ARP and DHCP packets dropped because the device was full
	EthFloods           // requests to the device to drop most frames of a flood
	ARPReceived         //
	ARPSent             //
	ARPMalformed        //
	ARPOverflow         // messages dropped because the interface loop could not keep up
	ARPConflict         // conflicts: another host claims one of our addresses
	NDReceived          //
	NDSent              //
	NDMalformed         // messages with a bad field or option, or a hop limit other than 255
	NDOverflow          // messages dropped because the interface loop could not keep up
	NDConflict          // conflicts: another host claims one of our IPv6 addresses
	RedirectFollowed    // redirects accepted from routers: a better first hop is used from then on
	RedirectIgnored     // redirects ignored because the interface is the loopback's, a router's or a gateway's
	RedirectUnsent      // IPv4 redirects ignored because they quote a packet that no socket can have sent
	RedirectStranger    // redirects ignored because they do not come from the current first hop of the destination
	RedirectOffLink     // redirects ignored because the new hop is not the address of another host on the link
	RedirectOverflow    // redirects dropped because too many arrived at once
	GroupReceived       // IGMP and MLD messages received
	GroupSent           //
	GroupMalformed      // messages with a bad field, length, or IGMP checksum
	GroupIgnored        // messages that a host does not need, such as reports in the newest version, and messages that cannot come from this link
	GroupOverflow       // messages dropped because the interface loop could not keep up
	NeighResolved       //
	NeighFailed         // neighbours that did not answer: the waiting packets were dropped
	NeighOverflow       // packets dropped because too many waited for one neighbour; the oldest is dropped
	IPReceived          //
	IPSent              //
	IPDelivered         // packets passed to a protocol
	IPMalformed         // packets with a bad header, length or option
	IPChecksum          //
	IPNotForUs          // packets whose destination is not one of our addresses
	IPNotMember         // packets to a multicast group that this host has not joined
	IPMartian           // packets with a source or destination that is not valid on the interface
	IPSourceRoute       // source-routed packets, which are rejected
	IPDiscarded         // IPv6 packets with a malformed extension header, or one that demands that they are discarded
	IPProblem           // IPv6 packets with an unknown header, answered with "parameter problem"
	IPNoProtocol        // packets of an unsupported protocol, answered with "protocol unreachable" or "parameter problem"
	IPNoRoute           //
	IPFragments         // fragments received
	IPReassembled       // datagrams reassembled
	IPReassembly        // fragments dropped because of an overlap, a timeout or the memory limit
	IPFragmented        // datagrams fragmented for sending
	IPFragsSent         //
	IPOverflow          // packets dropped because the queue of packets from other shards was full, or, in a flood, the reassembly memory
	ICMPReceived        //
	ICMPSent            //
	ICMPMalformed       //
	ICMPChecksum        //
	ICMPEcho            // echo requests answered
	ICMPEchoReply       // replies delivered to a ping socket
	ICMPErrors          // ICMP errors received and delivered to a socket
	ICMPIgnored         // messages of other types, and replies and errors that match no socket
	ICMPFiltered        // messages rejected by a ping socket's filter
	ICMPOverflow        // messages dropped because a ping socket's receive buffer was full
	ICMPErrorsSent      //
	ICMPLimited         // ICMP errors that were not sent because of the rate limit
	ICMPNoRoom          // replies dropped because the device was full
	RawReceived         // copies of packets delivered to raw sockets
	RawSent             //
	RawFiltered         // copies rejected by a raw socket's filter, or dropped because of a bad checksum
	RawOverflow         // copies dropped because a raw socket's receive buffer was full
	LinkReceived        // copies of frames delivered to link-layer sockets
	LinkSent            //
	LinkFiltered        // copies of frames rejected by a link-layer socket's filter
	LinkOverflow        // copies of frames dropped because a link-layer socket's receive buffer was full
	LinkNoRoom          // frames of link-layer sockets dropped because the device was full
	UDPReceived         //
	UDPSent             //
	UDPMalformed        //
	UDPChecksum         //
	UDPNoPort           // datagrams for which there is no socket, answered with "port unreachable" unless they were broadcast or multicast
	UDPFiltered         // datagrams rejected by the socket's filter, or because their checksum covers fewer bytes than the socket requires (UDP-Lite)
	UDPOverflow         // datagrams dropped because the socket's receive buffer was full
	TCPReceived         //
	TCPSent             //
	TCPMalformed        //
	TCPChecksum         //
	TCPNoPort           // segments for which there is no socket, answered with a reset
	TCPActiveOpens      //
	TCPPassiveOpens     //
	TCPEstablished      // connections that reached ESTABLISHED
	TCPResetsSent       //
	TCPResets           // connections that the peer reset
	TCPTimeouts         // connections that timed out
	TCPRetransmits      // segments retransmitted
	TCPLossTimeouts     // retransmission timeouts
	TCPFastRecoveries   // losses that were detected without a timeout
	TCPTailProbes       // tail loss probes sent (RFC 8985)
	TCPMTUProbes        // probes of a larger path MTU delivered (RFC 4821), and probes lost
	TCPMTUProbesLost    //
	TCPUndos            // reductions of the congestion window that were undone because nothing had been lost
	TCPOutOfOrder       // segments that arrived beyond a gap
	TCPDuplicates       // segments that had been received before
	TCPBacklogFull      // connection attempts dropped because the accept queue was full
	TCPCookiesSent      // SYNs answered with a cookie, for which the stack keeps no state
	TCPCookiesBad       // acknowledgments without a connection and with a wrong cookie
	TCPNoRoom           // resets dropped because the device was full
	TCPTimeWaitOverflow // connections removed from TIME-WAIT early because there were too many
	TCPOrphanOverflow   // orphaned connections that were reset because there were too many
	TCPResetsLimited    // segments without a connection left unanswered by the rate limit
	TCPCookiesLimited   // SYNs from unknown hosts left unanswered by the rate limit
	TCPFastActive       // connections whose SYN had data that the peer has acknowledged (Fast Open)
	TCPFastActiveFail   // connections whose SYN had data that the peer has not acknowledged
	TCPFastPassive      // connections that a SYN with a valid cookie has opened
	TCPFastPassiveFail  // SYNs with a wrong cookie
	TCPFastOverflow     // SYNs that were processed without Fast Open because too many requests were pending
	TCPFastRequests     // SYNs that requested a cookie
	TCPFastOlder        // connections that a cookie of the second key has opened
	ForwardOverflow     // connection attempts dropped because too many wait for the forwarder
	IPv6BytesReceived   // bytes of the IPv6 packets in IPReceived
	IPv6BytesSent       // bytes of the IPv6 packets in IPSent
	numCounters
)

var counterNames = [numCounters]string{
	"eth.received", "eth.sent", "eth.malformed", "eth.not_for_us", "eth.unknown_type", "eth.tagged",
	"eth.no_room", "eth.floods",
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
	"tcp.loss_timeouts", "tcp.fast_recoveries", "tcp.tail_probes", "tcp.mtu_probes", "tcp.mtu_probes_lost", "tcp.undos", "tcp.out_of_order", "tcp.duplicates",
	"tcp.backlog_full", "tcp.cookies_sent", "tcp.cookies_bad", "tcp.no_room", "tcp.time_wait_overflow", "tcp.orphan_overflow", "tcp.resets_limited", "tcp.cookies_limited",
	"tcp.fast_active", "tcp.fast_active_fail", "tcp.fast_passive", "tcp.fast_passive_fail", "tcp.fast_overflow", "tcp.fast_requests", "tcp.fast_older",
	"forward.overflow",
	"ip6.bytes_received", "ip6.bytes_sent",
}

// machineCounters maps the counters of package tcp to counters of the stack.
var machineCounters = map[tcp.Counter]Counter{
	tcp.Retransmits: TCPRetransmits, tcp.Timeouts: TCPLossTimeouts, tcp.FastRecoveries: TCPFastRecoveries,
	tcp.MTUProbes: TCPMTUProbes, tcp.MTUProbesLost: TCPMTUProbesLost,
	tcp.TailProbes: TCPTailProbes, tcp.Undos: TCPUndos, tcp.OutOfOrderIn: TCPOutOfOrder, tcp.DuplicatesIn: TCPDuplicates,
}

// String returns the name, "protocol.thing".
func (c Counter) String() string { return counter.Name(counterNames[:], c) }

// Counters is a snapshot of all counters since the stack was created.
type Counters [numCounters]uint64

// Get returns the value of one counter.
func (c *Counters) Get(which Counter) uint64 { return c[which] }

// All iterates over all counters, including those that are zero.
func (c *Counters) All() iter.Seq2[Counter, uint64] { return counter.All[Counter](c[:]) }

// String lists the nonzero counters, one "name value" per line.
func (c *Counters) String() string { return counter.List[Counter](c[:]) }

// tally is a set of counters, normally with one goroutine that adds and any number that
// read. Each shard and each receiver has its own, so that adding is an uncontended atomic
// operation. Events known to concern IPv6 are counted in the second half of the array.
type tally [2 * numCounters]atomic.Uint64

func (t *tally) count(which Counter)          { t[which].Add(1) }
func (t *tally) count6(which Counter)         { t.add6(which, 1) }
func (t *tally) add(which Counter, n uint64)  { t[which].Add(n) }
func (t *tally) add6(which Counter, n uint64) { t[numCounters+which].Add(n) }

// countBy counts an event under the IP version of the address a.
func (t *tally) countBy(a netip.Addr, which Counter) {
	if a.Is6() {
		t.count6(which)
		return
	}
	t.count(which)
}

// countSent counts an IP packet of n bytes sent to an address.
func (t *tally) countSent(to netip.Addr, n int) {
	t.countBy(to, IPSent)
	if to.Is6() {
		t.add6(IPv6BytesSent, uint64(n))
	}
}

// merge adds all counters of another tally (set of counters).
func (t *tally) merge(from *tally) {
	for i := range t {
		t[i].Add(from[i].Load())
	}
}

// addTo adds the counters of both versions of IP to c.
func (t *tally) addTo(c *Counters) {
	for i := range c {
		c[i] += t[i].Load() + t[int(numCounters)+i].Load()
	}
}

// addIPv6To adds the IPv6 counters to c.
func (t *tally) addIPv6To(c *Counters) {
	for i := range c {
		c[i] += t[int(numCounters)+i].Load()
	}
}
