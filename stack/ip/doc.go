// Package ip holds the machines of the Internet layer, each pure and each in a
// file of its own: no clock, lock or goroutine.
//
//	route.go        which way a packet goes: an immutable longest-prefix table
//	source.go       which of our addresses it comes from
//	chain.go        the headers of an IPv6 packet, one after the other (RFC 8200 section 4)
//	fragment.go     cutting a packet up for an MTU (RFC 791 section 3.2); fragment6.go for IPv6
//	reassembly.go   putting it together again (RFC 815, RFC 5722), with assembly.go, piece.go
//	pmtu.go         what is known of the MTU of paths (RFC 1191, RFC 8201)
//	id.go           identifications that do not tell (RFC 6864, RFC 7739)
//
// They work on values that package wire has parsed, and do not check again what
// that has checked.
package ip
