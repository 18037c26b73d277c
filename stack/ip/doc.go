// Package ip implements the state machines of the Internet layer. Each is pure and in a file of its own: no
// clock, lock or goroutine.
//
//	route.go        routing: an immutable longest-prefix table
//	source.go       source address selection
//	chain.go        the chain of IPv6 extension headers (RFC 8200 section 4)
//	fragment.go     fragmentation for an MTU (RFC 791 section 3.2); fragment6.go for IPv6
//	reassembly.go   reassembly (RFC 815, RFC 5722), with assembly.go, piece.go
//	pmtu.go         path MTU discovery (RFC 1191, RFC 8201)
//	redirect.go     redirects to better first hops (RFC 1122, RFC 4861)
//	id.go           unpredictable identifications (RFC 6864, RFC 7739)
//
// They take values that package wire has parsed, and do not repeat its checks.
package ip
