// Package linux holds the numbers and the memory layouts of Linux's system calls on
// x86-64, each defined once: for package posix, which serves them; for the core in ring 0;
// for the filter of a sealed process; and for the tests of all three.
//
// The names are those of Linux's C headers, so that a manual page can be searched for
// them. Structures are encoded to and decoded from bytes, never laid over memory: the
// bytes come from a caller whose address space may be another. A test compiles every
// constant and every layout against the headers of Debian (linux-libc-dev, libc6-dev).
//
// The package has no state, and imports nothing but the standard library. Code that must
// not grow its stack uses its constants only.
//
// Rejected: package syscall, which lacks whatever is newer than 2014 and whose structures
// can only be used by laying them over memory; and golang.org/x/sys/unix, which no guest
// may be linked with.
package linux
