// Package inet implements AF_INET and AF_INET6 sockets (ip(7), ipv6(7), tcp(7), udp(7), raw(7), icmp(7)) on the stack.
// One implementation serves both versions of IP.
//
// A socket owns objects of package stack and forwards their events to its waiters. Its options are tables: an entry names the
// option and its field in the stack. Network is the state that all sockets of a system share.
//
// # Reading order
//
// inet.go, inet6.go, tcpsocket.go, tcpoption.go, udpsocket.go, udpoption.go, then the others.
package inet
