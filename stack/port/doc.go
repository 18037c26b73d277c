// Package port assigns local ports. It is pure: no clock, lock or goroutine; the random numbers come from a
// seed.
//
//	conflict.go    whether two sockets can share a port: SO_REUSEADDR and
//	               SO_REUSEPORT as on Linux
//	table.go       the table of ports and connections
//	ephemeral.go   the choice of a port if the program names none (RFC 6056)
//
// Two kinds of things are reserved. A Binding is a local address and port of a protocol, as in bind(2);
// several sockets can have overlapping Bindings if they agree to share. A Flow is a connection, identified by
// both addresses and both ports, and is unique. Each Flow holds a Binding, either the program's or one made
// for the Flow. A port therefore stays in use as long as it has connections, in whatever order sockets are
// closed.
package port
