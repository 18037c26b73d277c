// Package demux finds the socket that receives a packet among the sockets that are bound to the packet's port. The rules are
// those of Linux (compute_score, udp4_lib_lookup2 and inet_lhash2_lookup in its source):
//
//   - A connected socket whose peer is the sender precedes all others. Then a socket bound to the destination address precedes
//     one bound to all addresses.
//   - Among these, a socket bound to the interface precedes one that is not, and an IPv4 socket precedes an IPv6 socket that
//     also receives IPv4.
//   - Among equals, the newest receives the packet. Sockets with SO_REUSEPORT that are bound alike form a group, which
//     divides the flows by hash. An IPv6 socket with SO_REUSEPORT is searched after the sockets without it and after IPv4
//     sockets, the oldest first. If the search finds a better socket with SO_REUSEPORT, its group receives the packet.
//
// Two rules differ. Linux continues the search if a socket of the group is connected. And if SO_REUSEPORT is cleared after bind(2), the
// socket stays in its group here. If two threads bind to one port at the same time, each table may have another newest socket.
//
// A Table belongs to one goroutine at a time.
package demux
