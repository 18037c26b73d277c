// Package neigh maps the IP addresses of a link to link-layer addresses. It is a pure state machine, one per
// interface: no clock, lock or goroutine.
//
// Cache is independent of the protocol. It is a bounded table from addresses to MACs with neighbour
// unreachability detection (RFC 4861 section 7.3). Like Linux, we also use the detection for ARP:
//
//	          Lookup                  answer
//	(nothing) ------> Incomplete ----------------> Reachable <--------------+
//	   ^                  | no answer                 | 30 s unconfirmed    |
//	   |                  v                           v                     |
//	   +---- 3 s ---- Negative      unasked news -> Stale                   | answer,
//	                      ^                           | Lookup              | Confirm
//	                      |                           v                     |
//	                      +------- no answer -- Probe <-- 5 s -- Delay -----+
//
// In Reachable, Stale, Delay and Probe the MAC is used at once; only Incomplete makes packets wait. The owner
// of the Cache queues them and receives an Event with the outcome.
//
// ARP connects the Cache to packets of RFC 826. It also answers for the interface's own addresses, announces
// them and defends them (RFC 5227). NDP does the same with Neighbour Discovery (RFC 4861). It tests addresses
// before they are used (RFC 4862), or restricts their use during the test (RFC 4429).
//
// # Hostile neighbours
//
// Anyone on the link can send ARP packets. A packet creates an entry only if our own Lookup asked for the
// address, or if it is a request for one of our addresses (the merge rule of RFC 826: we are about to answer
// the sender). If the table is full, entries are evicted by rank, the least recently used one first: first
// unconfirmed entries, then entries being resolved, last entries that have answered. An unsolicited packet
// evicts only unconfirmed entries. Static entries are neither evicted nor changed by packets.
//
// Reading order: cache.go, state.go, arp.go, address.go, ndp.go.
package neigh
