// Package icmp implements a host's decisions about ICMP errors; the encoding is in package wire. Everything
// is pure: no clock, lock or goroutine.
//
//	answer.go    whether an error may be sent about a packet, and what it quotes
//	limiter.go   rate limit of sent errors
//	quote.go     the packet of ours that a received error is about
//	extension.go extensions after the quoted packet
//	kind.go      what an error means for the socket that sent the packet
//
// Read RFC 1122 section 3.2.2 and RFC 1812 section 4.3.2 first. RFC 5927 describes attacks with forged
// errors, which is why a Quote includes a sequence number.
package icmp
