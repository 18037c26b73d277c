// Package socket is the common part of the families of sockets: the interface that a family implements
// (Socket), the state and options that all have (Base), addresses, control messages, and the encoding of
// option values.
//
// A family embeds Base in its sockets, and guards its own fields with Base.Mu.
//
// # Reading order
//
// socket.go, address.go, option.go, event.go, mailbox.go.
package socket
