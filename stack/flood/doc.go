// Package flood protects a host against floods of packets with forged source addresses.
//
//	Census     recognises a flood among the frames that a receiver gets
//	Thinning   makes the device deliver only a share of a flood, except from known peers
//	Peers      the hosts that Thinning spares
//	Strays   counts the segments without a connection that a shard gets, and holds the shard's connections
//	Listing    sets up the set of connections by which the device finds such segments
//	Strangers  limits the replies of a shard to hosts that have not completed a handshake
//
// A Census, Strays and Strangers are pure, and each belongs to one goroutine. Peers has a lock: shards add to it, and interface loops read it.
package flood
