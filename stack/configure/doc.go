// Package configure configures an interface from its link: Lease by DHCP, and Auto by router advertisements and DHCPv6. Both run
// the machines of packages dhcp and autoconf, and apply the results to the interface, which they know as an interface type.
//
// Neither reads a clock. One goroutine, the loop of the interface, owns both and calls their methods. Calls that wait for an address
// get it by a channel.
package configure
