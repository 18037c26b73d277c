// Package posix is the Linux personality: what a program that was written for
// Linux x86-64 finds when it makes a system call.
//
// # Two halves
//
// Each call is decoded and then done. Decoding turns registers and memory of
// the caller into Go values, and depends on who calls: a Go program in our own
// address space calls through unikernel/rt. Doing is here, once: a method of
// Process that takes a descriptor, byte slices, addresses, and returns an
// Errno. table.go lists the calls and what is missing of each.
//
// Byte slices are borrowed for the time of the call. Nothing here keeps one, or
// a part of one, after the method has returned.
//
// # Objects
//
//	Process ─ descriptors ─▶ open (flags, references) ─▶ file: a socket, an epoll set
//
// A descriptor names an open file description, which may have several names
// (dup) and lives as long as one is left. A file is one of the types tcpSocket,
// udpSocket, pingSocket, rawSocket, unixSocket, netlinkSocket, pipeEnd, stream, treeFile and
// epoll.
//
// # Waiting
//
// Files never block: they answer EAGAIN. Each has a waitQueue (wait.go) where
// others leave a function to be called when something begins: the poller of the
// Go runtime, an epoll set, a goroutine that waits because the descriptor is in
// blocking mode. Whoever causes the event, a shard of the stack as a rule, calls
// these functions itself.
//
// # Locks
//
// In this order: a file's own lock, then a waitQueue's, then an epoll set's
// ready list. A function in a waitQueue takes no file's lock.
//
// # Reading order
//
// table.go, process.go, descriptors.go, wait.go, socket.go; then the family of
// interest (tcpsocket.go, udpsocket.go, unixsocket.go, netlink.go) and the calls
// in sys_*.go.
package posix
