// Package stack is the TCP/IP stack: interfaces, routes, shards, and the
// sockets that programs hold.
package stack
