// Package socket contains the parts of the sockets of the stack that do not belong to a shard: errors, addresses in the form of
// package net, and waiting for a condition with a deadline.
package socket
