// Package neigh finds out which link-layer address belongs to an IP address of
// the same link. It is a pure machine, one for each interface: no clock, lock or
// goroutine.
//
// Cache knows nothing of any protocol. It is a bounded table from addresses to
// MACs with neighbour unreachability detection (RFC 4861 section 7.3, which
// Linux applies to ARP too, and so do we):
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
// In Reachable, Stale, Delay and Probe the MAC is used at once; only Incomplete
// makes packets wait. They wait with the owner of the Cache, who hears of the
// outcome by an Event.
//
// ARP puts that into packets of RFC 826 and adds what an interface owes its own
// addresses: answering for them, announcing them and guarding them (RFC 5227).
// NDP does the same by Neighbor Discovery (RFC 4861), and tries addresses before they are
// used (RFC 4862), or while they are used with care (RFC 4429).
//
// # Hostile neighbours
//
// Anybody on the link can send us ARP. News makes a new entry only if it is our
// own Lookup that asked, or if it came in a request for one of our addresses
// (the merge rule of RFC 826: who asks for us will hear from us). When the table
// is full, entries give way by rank, the least recently used one first: what we
// were merely told, then what we are trying to find, and last what has answered
// us before. What we are told evicts only its own kind. Static entries do not
// give way and are not changed by news.
//
// Reading order: cache.go, state.go, arp.go, address.go, ndp.go.
package neigh
