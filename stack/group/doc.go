// Package group tells a link which multicast groups a host hears, so that its routers send
// them there and its switches let them through: the host's side of IGMPv3 (RFC 9776
// sections 5 and 7.2) and MLDv2 (RFC 9777 sections 6 and 8.2), and of the older versions that
// a host falls back to when its link has an older querier (RFC 1112, RFC 2236, RFC 2710).
//
// A Host is the pure machine of one interface, for one of the two protocols: they differ in
// the sizes of addresses and in numbers, and wire.GroupProtocol knows which. It is told by which
// filter of sources a group is heard, and of messages that arrive; Poll hands out what is to be
// sent, and Deadline says when there may be more. It does not check what a message came in:
// whoever owns it does (RFC 9776 section 9.1, RFC 9777 section 6.2).
//
// A Reception adds up what the sockets of an interface want of one group; its Filter is what
// the Host is told. Of the range of source-specific multicast (RFC 4607) nothing is known here:
// what sockets ask for is told, though routers that know the range ignore EXCLUDE there (RFC
// 4604 section 2.2.1).
//
// All changes that are due at one time are one report, and are repeated together, so that an
// interface which comes up with several groups does not send a packet for each.
//
// Not here: the router's side, and reports of others that would suppress ours in the newest
// versions, which a host may heed (RFC 9776 section 7.2.2).
package group
