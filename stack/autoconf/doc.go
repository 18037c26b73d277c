// Package autoconf implements IPv6 router discovery and address autoconfiguration: hosts derive addresses,
// routes and name servers from router advertisements (RFC 4861 section 6, RFC 4862 section 5.5, RFC 4191, RFC
// 8106). There are two pure state machines without a clock. Host solicits and receives advertisements. Router
// sends the same advertisement for as long as it exists. The owner passes in the time and received messages,
// and sends the messages that they return. The owner of a Host also configures the interface according to
// Setup.
//
// Everything that a Host learns has a lifetime, and the amount that it stores is bounded. Data beyond the
// bounds is counted and ignored. An address consists of a prefix and the station's modified EUI-64 (RFC 4291
// appendix A). The stable secrets of RFC 7217 have no use here: the MAC of an interface is generated, so it
// reveals nothing, and no state of a program survives until the next run, so a secret would not be stable.
//
// Not implemented here: DHCPv6, which the flags of advertisements announce (see package dhcp); temporary
// addresses (RFC 8981); SEND (RFC 3971).
//
// Reading order: host.go, learn.go, setup.go, router.go.
package autoconf
