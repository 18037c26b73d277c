// Package usernet is an unprivileged gateway. It connects a guest to the network through
// ordinary host sockets. `loam run --net user` uses it.
//
// The gateway has a Loam stack attached to the guest's link. The stack accepts packets to
// every address (stack.InterfaceConfig.AcceptAny). Connections of the guest to the
// outside end in this stack, and a host socket continues them under the host's own
// address:
//
//	guest ── link ── stack ─┬─ tcp.go      ── relay.go ── TCP sockets ──┐
//	                        ├─ udp.go      ── flow.go ─── UDP sockets ──┤
//	                        ├─ ping.go     ────────────── ICMP socket ──┼── host
//	                        ├─ publish*.go ── listening sockets ────────┤
//	                        ├─ dns*.go     ── resolv.conf's servers ────┘
//	                        └─ dhcp.go        hands out the address
//
// A guest that is a process of the same host can receive the connections to its published
// TCP ports as descriptors (hand.go, Config.Program). Such connections do not pass
// through a Loam stack.
//
// The guest's network uses the addresses of QEMU's user network: 10.0.2.0/24 with the
// gateway at .2, a name server at .3 and the guest at .15. For IPv6 it is the unique
// local prefix fd6c:6f61:6d00::/64 (RFC 4193) with the same host numbers. The gateway
// advertises the prefix (ipv6.go), and itself as a router if the host has IPv6. Config
// can change these addresses.
//
// # What the guest can reach
//
// The guest can reach whatever the gateway's process can reach, with three exceptions.
// The host's loopback network is reachable only if Config.HostLoopback is set; then the
// gateway's addresses stand for 127.0.0.1 and ::1. The guest's own subnets contain no
// other hosts. Broadcast, multicast and IPv6 link-local addresses are not forwarded. In
// particular, the host's other addresses and the networks attached to the host are
// reachable.
//
// # Limits
//
// The guest is not trusted. Everything that a guest can make the gateway hold has a limit
// (Limits): connections, connection attempts, UDP flows, echo requests, DNS queries. At
// the limit, a request is refused or replaces the entry that has been idle longest, and
// is counted (Counters). All buffers have a fixed size, and a reader that stops reading
// blocks the writer at the other end.
//
// Reading order: config.go, gateway.go, reach.go; then one service at a time.
package usernet
