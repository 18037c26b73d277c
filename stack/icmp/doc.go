// Package icmp holds what a host decides about ICMP errors: whether one may be
// sent about a packet, how many, which packet of ours one that arrives is about,
// and what it means for the socket. The messages themselves are in wire.
//
// Read RFC 1122 section 3.2.2 and RFC 1812 section 4.3.2 first.
package icmp
