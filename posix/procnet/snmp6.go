package procnet

import (
	"fmt"
	"strings"

	"loam/posix/netdevice"
	"loam/stack"
)

// IPv6 counters, with the names of Linux's net/ipv6/proc.c. Counters without a value in Loam are 0.

// countersIPv6 returns the IPv6 part of the stack's counters.
func (p *View) countersIPv6() (c stack.Counters) {
	if p.Net != nil {
		c = p.Net.CountersIPv6()
	}
	return c
}

// snmp6Lines writes one line for each counter.
func snmp6Lines(b *strings.Builder, fields []field) {
	for _, f := range fields {
		fmt.Fprintf(b, "%-32s\t%d\n", f.name, f.value)
	}
}

// ip6Fields returns the objects of RFC 4293. The stack counts packets of Neighbor Discovery and MLD separately, so their
// counters are added to those of IP.
func ip6Fields(c *stack.Counters) []field {
	return []field{
		{"Ip6InReceives", c.Get(stack.IPReceived)},
		{"Ip6InHdrErrors", c.Get(stack.IPMalformed) + c.Get(stack.IPDiscarded) + c.Get(stack.IPProblem)},
		{"Ip6InTooBigErrors", 0}, {"Ip6InNoRoutes", 0}, {"Ip6InAddrErrors", c.Get(stack.IPNotForUs) + c.Get(stack.IPMartian)},
		{"Ip6InUnknownProtos", c.Get(stack.IPNoProtocol)}, {"Ip6InTruncatedPkts", 0}, {"Ip6InDiscards", 0},
		{"Ip6InDelivers", c.Get(stack.IPDelivered) + c.Get(stack.NDReceived)}, {"Ip6OutForwDatagrams", 0},
		{"Ip6OutRequests", c.Get(stack.IPSent) + c.Get(stack.NDSent) + c.Get(stack.GroupSent)}, {"Ip6OutDiscards", 0},
		{"Ip6OutNoRoutes", c.Get(stack.IPNoRoute)}, {"Ip6ReasmTimeout", 0}, {"Ip6ReasmReqds", c.Get(stack.IPFragments)},
		{"Ip6ReasmOKs", c.Get(stack.IPReassembled)}, {"Ip6ReasmFails", 0}, {"Ip6FragOKs", c.Get(stack.IPFragmented)}, {"Ip6FragFails", 0},
		{"Ip6FragCreates", c.Get(stack.IPFragsSent)}, {"Ip6InMcastPkts", 0}, {"Ip6OutMcastPkts", 0},
		{"Ip6InOctets", c.Get(stack.IPv6BytesReceived)}, {"Ip6OutOctets", c.Get(stack.IPv6BytesSent)},
		{"Ip6InMcastOctets", 0}, {"Ip6OutMcastOctets", 0}, {"Ip6InBcastOctets", 0}, {"Ip6OutBcastOctets", 0},
		{"Ip6InNoECTPkts", 0}, {"Ip6InECT1Pkts", 0}, {"Ip6InECT0Pkts", 0}, {"Ip6InCEPkts", 0},
	}
}

// icmp6Fields returns the ICMPv6 counters. Counters of individual message types are always 0.
func icmp6Fields(c *stack.Counters) []field {
	fields := []field{
		{"Icmp6InMsgs", c.Get(stack.ICMPReceived) + c.Get(stack.NDReceived)},
		{"Icmp6InErrors", c.Get(stack.ICMPMalformed) + c.Get(stack.NDMalformed) + c.Get(stack.ICMPChecksum)},
		{"Icmp6OutMsgs", c.Get(stack.ICMPSent) + c.Get(stack.NDSent) + c.Get(stack.GroupSent)},
		{"Icmp6OutErrors", c.Get(stack.ICMPNoRoom)}, {"Icmp6InCsumErrors", c.Get(stack.ICMPChecksum)},
	}
	for _, way := range [...]string{"In", "Out"} {
		for _, kind := range [...]string{
			"DestUnreachs", "PktTooBigs", "TimeExcds", "ParmProblems", "Echos", "EchoReplies", "GroupMembQueries", "GroupMembResponses",
			"GroupMembReductions", "RouterSolicits", "RouterAdvertisements", "NeighborSolicits", "NeighborAdvertisements", "Redirects",
			"MLDv2Reports",
		} {
			fields = append(fields, field{"Icmp6" + way + kind, 0})
		}
	}
	return fields
}

// procSNMP6 lists the counters of all interfaces together, and of UDP.
func (p *View) procSNMP6() string {
	c := p.countersIPv6()
	var b strings.Builder
	snmp6Lines(&b, ip6Fields(&c))
	snmp6Lines(&b, icmp6Fields(&c))
	snmp6Lines(&b, []field{
		{"Udp6InDatagrams", c.Get(stack.UDPReceived)}, {"Udp6NoPorts", c.Get(stack.UDPNoPort)}, {"Udp6InErrors", c.Get(stack.UDPMalformed)},
		{"Udp6OutDatagrams", c.Get(stack.UDPSent)}, {"Udp6RcvbufErrors", c.Get(stack.UDPOverflow)}, {"Udp6SndbufErrors", 0},
		{"Udp6InCsumErrors", c.Get(stack.UDPChecksum)}, {"Udp6IgnoredMulti", 0}, {"Udp6MemErrors", 0},
	})
	for _, name := range [...]string{
		"InDatagrams", "NoPorts", "InErrors", "OutDatagrams", "RcvbufErrors", "SndbufErrors", "InCsumErrors", "MemErrors",
	} {
		snmp6Lines(&b, []field{{"UdpLite6" + name, 0}})
	}
	return b.String()
}

// DevSNMP6 returns the function for an interface's file in /proc/net/dev_snmp6. The content is empty if
// the interface does not exist.
func DevSNMP6(name string) func(*View) string {
	return func(p *View) string {
		i := netdevice.Named(p.Net, name)
		if i == nil {
			return ""
		}
		c := i.CountersIPv6()
		var b strings.Builder
		snmp6Lines(&b, []field{{"ifIndex", uint64(i.Index())}})
		snmp6Lines(&b, ip6Fields(&c))
		snmp6Lines(&b, icmp6Fields(&c))
		return b.String()
	}
}

// procSockstat6 counts IPv6 sockets.
func (p *View) procSockstat6() string {
	c := p.countSockets()
	return fmt.Sprintf("TCP6: inuse %d\nUDP6: inuse %d\nUDPLITE6: inuse 0\nRAW6: inuse %d\nFRAG6: inuse 0 memory 0\n",
		c.tcp[1], c.udp[1], c.raw[1])
}
