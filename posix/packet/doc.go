// Package packet implements packet sockets (packet(7)): frames of an interface of the stack, received and sent with or without
// their link header, and rings that a program maps and polls without system calls.
package packet
