// Package usernet is an unprivileged gateway. It connects a guest to the network through
// ordinary host sockets. `loam run --net user` uses it.
//
// The gateway has a Loam stack attached to the guest's link. The stack accepts packets to every destination address
// (stack.InterfaceConfig.AcceptAny). So the guest's connections end in this stack. For each, the gateway opens a host
// socket to the real destination and copies the data; the destination sees the host's address:
//
//	guest ── link ── stack ─┬─ tcp.go      ── relay.go ── TCP sockets ──┐
//	                        ├─ udp.go      ── flow.go ─── UDP sockets ──┤
//	                        ├─ ping.go     ────────────── ICMP socket ──┼── host
//	                        ├─ publish*.go ── listening sockets ────────┤
//	                        ├─ dns*.go     ── resolv.conf's servers ────┘
//	                        └─ dhcp.go        hands out the address
//
// If the guest is a process of the same host, it can receive the connections to its published TCP ports as descriptors
// (hand.go, Config.Program). Such connections do not pass through a Loam stack.
//
// The guest's network uses the addresses of QEMU's user network: 10.0.2.0/24 with the
// gateway at .2, a name server at .3 and the guest at .15. For IPv6 it is the unique
// local prefix fd6c:6f61:6d00::/64 (RFC 4193) with the same host numbers. The gateway
// advertises the prefix (ipv6.go), and itself as a router if the host has IPv6. Config
// can change these addresses.
//
// # What the guest can reach
//
// The guest can reach every destination that the gateway's process can reach, with three exceptions. First, the host's
// loopback network is reachable only if Config.HostLoopback is set; the guest then uses the gateway's addresses in
// place of 127.0.0.1 and ::1. Second, the guest's own subnets contain no other hosts. Third, broadcast, multicast and
// IPv6 link-local addresses are not forwarded. In particular, the host's other addresses and the networks attached to
// the host are reachable.
//
// # Limits
//
// The guest is not trusted. Every resource of the gateway that a guest can use has a limit (Limits): connections,
// connection attempts, UDP flows, echo requests, DNS queries. At the limit, a new request is refused, or it replaces
// the entry that has been idle longest; a counter counts both (Counters). All buffers have a fixed size. If one side of
// a connection stops reading, the gateway stops reading from the other side.
//
// Reading order: config.go, gateway.go, reach.go; then one service at a time.
package usernet
