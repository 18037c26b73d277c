// Package usernet is the unprivileged gateway: a network for a guest, made of
// ordinary host sockets. It is what `loam run --net user` gives a program.
//
// The gateway is a Loam stack with a foot on each side. On the link to the guest
// it answers for every address there is (stack.InterfaceConfig.AcceptAny); what
// the guest sends to the world ends here, and goes on from a socket of the host,
// in the gateway's own name:
//
//	guest ── link ── stack ─┬─ tcp.go      ── relay.go ── TCP sockets ──┐
//	                        ├─ udp.go      ── flow.go ─── UDP sockets ──┤
//	                        ├─ ping.go     ────────────── ICMP socket ──┼── host
//	                        ├─ publish*.go ── listening sockets ────────┤
//	                        ├─ dns*.go     ── resolv.conf's servers ────┘
//	                        └─ dhcp.go        hands out the address
//
// A guest that is a process of the same host can be given the connections of its published
// TCP ports themselves (hand.go, Config.Program): these pass no stack of Loam's.
//
// The guest's network has the addresses that QEMU's user network made usual:
// 10.0.2.0/24 with the gateway at .2, a name server at .3 and the guest at .15. In IPv6
// it is fd6c:6f61:6d00::/64, a prefix of our own (RFC 4193) that has the same places; the
// gateway advertises it (ipv6.go), and itself as a router if the host has IPv6.
// See Config for what may differ.
//
// # What the guest can reach
//
// Whatever the process that runs the gateway can reach, with three exceptions.
// The loopback network of the host is out of reach unless Config.HostLoopback
// is set: then the gateway's addresses stand for 127.0.0.1 and ::1. The rest of the
// guest's own subnets is empty. Broadcast, multicast and link-local addresses of
// IPv6 are not forwarded. In
// particular the host's other addresses, and the networks that it is connected
// to, are in reach.
//
// # Bounds
//
// The guest is not trusted. Each thing that it can make the gateway hold has a
// limit (Limits): connections, attempts to connect, UDP flows, echo requests,
// DNS queries. What is beyond a limit is refused, or takes the place of what was
// idle longest, and is counted (Counters). Bytes wait in few places, each of a
// fixed size, and a reader that stops is felt by the writer at the other end.
//
// Reading order: config.go, gateway.go, reach.go; then a service at a time.
package usernet
