// Package configure configures an interface from its link: Lease by DHCP, and Auto by router advertisements and DHCPv6.
// Both run the state machines of packages dhcp and autoconf, and apply the results to the interface through the Go
// interfaces LeaseLink and AutoLink.
//
// Neither reads a clock. One goroutine, the loop of the interface, owns both and calls their methods. A call that waits
// for an address receives it from a channel.
package configure
