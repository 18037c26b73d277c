// Package stack implements a TCP/IP host: interfaces, routes, shards, and the sockets that programs use.
//
// # Shape
//
// Connections are divided over shards. A shard owns its connections, their timers and its reassembly buffers. A symmetric hash
// of addresses and ports assigns each flow to one shard. A shard works in turns: a turn is one pass over its input, followed
// by output. Each shard has a goroutine that runs its turns; another goroutine with a small batch of packets for an idle shard
// runs the turn itself (turn.go). A shard's state needs no lock other than the one held for the turn.
//
//	device ─ Recv ─▶ receiver ══ batches ══▶ shard ─ Send ─▶ device
//	                    │                    ▲    │
//	                    └ARP, ND▶ interface ─┘    └─ byte rings, doorbells ─▶ program
//
// Each goroutine is a method of the object it serves:
//
//   - (*receiver).loop, one per device queue, reads frames and sorts them by shard.
//   - (*shard).loop runs the turns of its shard.
//   - (*Interface).loop, one per interface, owns the neighbour cache, the DHCP client and
//     the multicast group reports.
//
// Input processing never sends. A shard first processes everything that has arrived. It then asks each connection it touched
// for segments to send, as far as the device has room. A shard never blocks in a device, so it always drains its input. For
// that reason a receiver may wait for a shard, and no packet is dropped between them for lack of room.
//
// Addresses, routes and resolved neighbours change rarely and are read often. They are
// published as immutable tables that are read without a lock (tables.go).
//
// # Fake time
//
// A stack may be created inside a testing/synctest bubble and is then used from that bubble only. Its channels and timers
// belong to the bubble, so whole networks run in fake time. Programs on Loam may be in any bubble, because a system call
// leaves the bubble (unikernel/overlay).
//
// # Reading order
//
// stack.go, tables.go, interface.go, shard.go, turn.go, input.go, output.go. Then one protocol at a time: tcpconn.go,
// tcplistener.go, udp.go, icmp.go, ping.go, raw.go. net.go has the blocking calls of net.Conn. groups.go reports multicast
// group membership to the link. The files specific to IPv6 are route6.go, ip6input.go, ip6output.go, icmp6.go and nd.go.
package stack
