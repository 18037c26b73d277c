// Package port decides who gets which local port. It is pure: no clock, lock or
// goroutine; the random numbers come from a seed.
//
//	conflict.go    whether two sockets can have the same port: SO_REUSEADDR and
//	               SO_REUSEPORT as Linux has them
//	table.go       who has which port, and which connections there are
//	ephemeral.go   which port is taken when the program names none (RFC 6056)
//
// Two things are reserved. A Binding is a local address and port of a protocol,
// as bind(2) takes it; several sockets can have overlapping ones if they agree
// to. A Flow is a connection: both addresses and both ports, which exist once.
// Each Flow has a Binding, the program's or one made for it, so that a port stays
// taken as long as there are connections on it, whoever has closed what.
package port
