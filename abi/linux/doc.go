// Package linux holds the numbers and the memory layouts of Linux's system calls on x86-64, each defined once. Its
// users are package posix, which implements the calls; the kernel in ring 0; the system call filter of a confined
// process; and their tests.
//
// The names are those of Linux's C headers, so that a manual page can be searched for them. Structures are encoded to
// and decoded from bytes and never overlaid on memory, because the bytes may come from another address space. A test
// compares every constant and every layout with the C headers of Debian (linux-libc-dev, libc6-dev).
//
// The package has no state, and imports only the standard library. Code that must not grow its stack may use its
// constants, but not its functions.
//
// Rejected: package syscall, which lacks constants that are newer than 2014, and whose structures have to be overlaid
// on memory. Rejected: golang.org/x/sys/unix, because a guest may be linked only with the standard library and Loam.
package linux
