// Package autoconf is how hosts of IPv6 find their routers, and what they make of what
// routers say: addresses, routes, name servers (RFC 4861 section 6, RFC 4862 section 5.5,
// RFC 4191, RFC 8106). There are two pure machines: Host, which asks and listens, and
// Router, which advertises the same thing for as long as it is there. Neither has a clock;
// whoever owns one gives it the time and the messages that arrive, sends what it has to
// say, and for a Host makes the interface what Setup says.
//
// Everything that a Host believes has a lifetime, and there are bounds on how much it
// believes at once: what is beyond them is counted and not believed. An address is made of
// a prefix and the station's modified EUI-64 (RFC 4291 appendix A): the MAC of an interface
// is made up where no privacy is to be had from hiding it, and nothing of a program lasts
// from one run to the next, so the stable secrets of RFC 7217 would not be stable.
//
// Not here: DHCPv6, of which the flags of advertisements tell (package dhcp); temporary addresses (RFC
// 8981); SEND (RFC 3971).
//
// Reading order: host.go, learn.go, setup.go, router.go.
package autoconf
