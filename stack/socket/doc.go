// Package socket has what all sockets of the stack share and no shard owns: errors, and waiting for a condition with a deadline.
package socket
