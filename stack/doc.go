// Package stack is the TCP/IP stack: interfaces, routes, shards, and the
// sockets that programs hold.
//
// # Shape
//
// Work is divided over shards. A shard owns a set of connections outright, with
// their timers and their reassembly buffers; a flow belongs to a shard by a
// symmetric hash of its addresses and ports. A shard works in turns, and has a
// goroutine for them; who brings it little and finds it at rest does a turn itself
// (turn.go). Nothing that a shard owns has a lock but that for the turn.
//
//	device ─ Recv ─▶ receiver ══ batches ══▶ shard ─ Send ─▶ device
//	                    │                    ▲    │
//	                    └ARP, ND▶ interface ─┘    └─ byte rings, doorbells ─▶ program
//
// Goroutines, each a method of its owner: (*receiver).loop, one for each device
// queue, reads frames and sorts them by shard; (*shard).loop; (*Interface).loop,
// one for each interface, owns its neighbour caches, its DHCP client, and what is said of
// multicast groups.
//
// Input never sends. A shard first takes in everything that has arrived, then
// asks the connections that it touched what there is to send, as far as the
// device has room. A shard never blocks in a device, so it always drains its
// input, and so the receivers may wait for it: inside the process nothing is
// dropped for want of room.
//
// What changes rarely and is read often (addresses, routes, resolved
// neighbours) is published as immutable tables that everybody reads without a
// lock: see tables.go.
//
// # Fake time
//
// A stack belongs to the bubble of testing/synctest in which it is made, or to
// none, and is used from there: its channels and timers are as bubbles have it,
// so that whole networks run in fake time. Programs on Loam may be in any bubble,
// because a system call leaves it (unikernel/overlay).
//
// # Reading order
//
// stack.go, tables.go, interface.go, shard.go, turn.go, input.go, output.go; then a
// protocol at a time: tcpconn.go, tcplistener.go, udp.go, icmp.go, ping.go, raw.go; net.go has
// the blocking side that net.Conn asks for; groups.go tells the link of multicast groups.
// What IPv6 has of its own is in route6.go, ip6input.go, ip6output.go, icmp6.go and nd.go.
package stack
