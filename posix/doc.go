// Package posix is the Linux personality: it implements the system calls of Linux x86-64 for the
// program that runs on Loam.
//
// # Two halves
//
// Each call is decoded and then executed. Decoding turns registers and the caller's memory into Go
// values. It is the task of package posix/call, whose table lists every call and what it lacks.
// Execution is the task of this package: a method of Process takes a descriptor, byte slices and
// addresses, and returns an Errno.
//
// Byte slices are borrowed for the duration of the call. No method keeps a slice, or a part of one,
// after it has returned.
//
// # Objects
//
//	Process ─ descriptors ─▶ open (flags, references) ─▶ file: a socket, an epoll set
//
// A file descriptor refers to an open file description (open). Several descriptors may refer to the
// same description (dup). The description lives until the last of them is closed. The file behind it is
// a tcpSocket, hostTCP, udpSocket, pingSocket, rawSocket, packetSocket, unixSocket, netlinkSocket,
// pipeEnd, stream, treeFile, epoll, eventFD, timerFD, signalFD, inotify, ptyMaster or ptySlave.
//
// # Waiting
//
// Files never block: they return EAGAIN. Each file has a waitQueue (wait.go), in which a waiter
// registers a function that is called when the file becomes ready. Waiters are the poller of the Go
// runtime, epoll sets, and goroutines blocked in a call on a blocking descriptor. The goroutine that
// causes an event, usually a shard of the stack, calls these functions itself.
//
// # Locks
//
// The lock order is: a file's own lock, a waitQueue's lock, the lock of an epoll set's ready list. A
// function registered in a waitQueue takes no file's lock.
//
// # Terminals
//
// A pseudo-terminal (pty.go) is a terminal.Line with two ends. Sessions and their controlling terminals are in session.go;
// process groups, and the state of the calling thread, are the task of a Member (jobs.go), which package task implements.
//
// # Reading order
//
// posix/call/table.go, process.go, descriptors.go, wait.go, socket.go; then the family of interest
// (tcpsocket.go, udpsocket.go, unixsocket.go, netlink.go) and the calls in sys_*.go.
package posix
