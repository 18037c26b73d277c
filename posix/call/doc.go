// Package call is the table of system calls. A row holds everything that is known about a call: its
// number, name and arguments, who serves it, what it lacks, how signals affect it, and the function
// that serves it. The table is used by the replacement of the standard library's system calls
// (unikernel/rt), by calls that trap in ring 0 (kernel), and by the filter of a sealed process
// (unikernel/seal). docs/syscalls.md is generated from it.
//
// A function of the table decodes a call: it converts registers and bytes of the caller's memory to
// arguments of a method of posix.Process, and converts the results back to bytes. It accesses the
// caller's memory only through Memory. So it serves both a Go program in our own address space and a
// process behind page tables. A bad address returns EFAULT.
//
// The order of checks is Linux's where programs can observe it: a descriptor is looked up before memory
// is read, and a length is checked before the address. Differences are listed in
// unikernel/errno_test.go, with the reason.
//
// Rejected: a switch over numbers at each place that needs to know the calls, because the switches must
// be kept equal. Also rejected: a table of interface values whose methods decode, because a function
// value costs the same and needs no types.
package call

import (
	"loam/abi/linux"
	"loam/posix"
)

// Who is the set of components that implement a call.
type Who uint8

// Values of Who: which parts of Loam serve a call.
const (
	// package posix, through Row.Serve; together with Host: only if the program does not run as a process of Linux
	Personality Who = 1 << iota
	Host            // the Linux kernel of the host, for a program that runs as a process; unikernel/seal allows the call
	Runtime         // the Linux kernel of the host, but only for the Go runtime and Loam itself, not for the program
	Core            // package kernel, in a virtual machine
	AtOnce          // package kernel, in a virtual machine, at the SYSCALL instruction itself; other calls first raise SIGSYS
)

// Signal says how a signal handler affects a call that waits (signal(7)).
type Signal uint8

// Values of Signal: what a signal with a handler does to a waiting call.
const (
	Unaffected Signal = iota // the call does not wait, or its wait is not interrupted
	Restarts                 // if the handler has SA_RESTART the call restarts, and otherwise it fails with EINTR
	Fails                    // the call fails with EINTR
)

// String returns the words used in docs/syscalls.md.
func (s Signal) String() string { return [...]string{"", "restarts", "fails with EINTR"}[s] }

// Arguments describes the arguments of a call, one letter for each:
//
//	f  a descriptor
//	d  the descriptor of a directory, or AT_FDCWD
//	s  the address of a string with a terminating NUL
//	p  an address
//	v  the address of an array of struct iovec
//	n  a number of bytes or elements
//	o  an offset, a position, or the address of a mapping, which is not read
//	i  any other number
type Arguments string

// Addresses returns a bit set of the arguments that are addresses in the caller's memory. Bit 0 is the
// first argument.
func (a Arguments) Addresses() (set uint8) {
	for i, kind := range a {
		if kind == 's' || kind == 'p' || kind == 'v' {
			set |= 1 << i
		}
	}
	return set
}

// DescriptorFirst reports whether the first argument is a descriptor. It may be a descriptor of the
// host.
func (a Arguments) DescriptorFirst() bool { return len(a) > 0 && a[0] == 'f' }

// Args holds the arguments of a call, as passed in registers.
type Args struct{ A1, A2, A3, A4, A5, A6 uint64 }

// Caller is the process that makes a call, and its memory.
type Caller struct {
	Process *posix.Process
	Memory  Memory
}

// Serve executes a call. It returns the result, or an errno and a meaningless result.
type Serve func(c Caller, a Args) (uint64, linux.Errno)

// Row is a row of the table.
type Row struct {
	Number  int
	Name    string
	Args    Arguments
	Who     Who
	Signal  Signal
	Missing string      // documented differences from Linux; empty: none
	Errno   linux.Errno // returned for a call without Serve: the error of a Linux kernel that does not permit the call
	Serve   Serve       // the function in package posix/call; nil unless Who contains Personality
}

// Numbers is the size of arrays that are indexed by the number of a call. Their last element stands for all larger numbers,
// for which no call exists.
const Numbers = 512

// ByNumber returns the row with a number, or nil.
func ByNumber(number int) *Row {
	for i := range Table {
		if Table[i].Number == number {
			return &Table[i]
		}
	}
	return nil
}
