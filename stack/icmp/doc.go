// Package icmp holds what a host decides about ICMP errors, apart from the bytes,
// which are in wire. Everything is pure: no clock, lock or goroutine.
//
//	answer.go    whether an error may be sent about a packet, and what it quotes
//	limiter.go   how many errors are sent
//	quote.go     which packet of ours an error that arrived is about
//	kind.go      what that error means for the socket that sent the packet
//
// Read RFC 1122 section 3.2.2 and RFC 1812 section 4.3.2 first; RFC 5927 says
// what can be done with forged errors, and so why a Quote holds a sequence
// number.
package icmp
