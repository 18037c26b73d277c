// Package group reports the multicast group memberships of a host to its link, so that routers and switches
// forward the groups. It implements the host's side of IGMPv3 (RFC 9776 sections 5 and 7.2) and MLDv2 (RFC
// 9777 sections 6 and 8.2), and of the older versions, which a host uses if its link has an older querier
// (RFC 1112, RFC 2236, RFC 2710).
//
// A Host is the pure state machine of one interface for one of the two protocols. The protocols differ only
// in address sizes and numbers, which wire.GroupProtocol defines. The owner passes in the source filter of
// each group and the received messages. Poll returns messages to send, and Deadline returns when to poll
// again. The owner must check the IP packet that a message arrived in (RFC 9776 section 9.1, RFC 9777 section
// 6.2).
//
// A Reception combines the source filters of all sockets for one group; its Filter is passed to the Host. The
// address range of source-specific multicast (RFC 4607) gets no special treatment: all filters are reported,
// although routers that implement it ignore EXCLUDE in that range (RFC 4604 section 2.2.1).
//
// All changes due at the same time share one report and are repeated together. An interface that comes up
// with several groups thus does not send a packet for each.
//
// Not implemented: the router's side, and the suppression of reports by those of other hosts in the newest
// versions, which is optional (RFC 9776 section 7.2.2).
package group
