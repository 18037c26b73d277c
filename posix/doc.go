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
// # Families
//
// Package posix/file is the common part: open file descriptions, descriptor tables and waiting. A family is one kind of files or
// sockets, such as pipes, and has a package between posix/file and this one. A family depends neither on processes nor on other
// families, unless its package comment says so. This package has the state of processes, and the methods that implement calls.
//
// # Terminals
//
// A pseudo-terminal is a terminal.Line with two ends. Package tty has them, sessions and their controlling terminals. Process
// groups, and the state of the calling thread, are the task of a Member, which package task implements.
//
// # Reading order
//
// posix/file, posix/call/table.go, process.go, then the family of interest and the calls in sys_*.go.
package posix
