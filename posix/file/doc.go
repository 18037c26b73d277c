// Package file is the core of the Linux personality: files as a descriptor refers to them, tables of
// descriptors, and waiting. The families of files (sockets, pipes, terminals and others) implement File
// in packages of their own, and this package depends on none of them.
//
// # Objects
//
//	Table ─ descriptor ─▶ Description (flags, references) ─▶ File
//
// A file descriptor refers to an open file description. Several descriptors may refer to the same
// description (dup). The description lives until the last of them is closed.
//
// # Waiting
//
// Files never block: they return EAGAIN. Each file has a Queue, in which a waiter registers a Watch: a
// function that is called when the file becomes ready. Waiters are the poller of the Go runtime, epoll
// sets, and goroutines blocked in a call (Sleeper). The goroutine that causes an event, usually a shard of
// the stack, calls these functions itself.
//
// # Locks
//
// The lock order is: a file's own lock, a Queue's lock, the lock of an epoll set's ready list. A
// function registered in a Queue takes no file's lock.
//
// # Reading order
//
// event.go, queue.go, sleep.go, description.go, table.go.
package file
