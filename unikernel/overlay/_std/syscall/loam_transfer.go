package syscall

// Fast paths for read and write, which programs call most. They do not need the hook: their arguments are a
// number and a slice, and a slice moves with the stack. So neither the table of calls nor a function of
// this package is between a program and its file.

import _ "unsafe" // for go:linkname

// read and write are read(2) and write(2), for descriptors of Loam and of the host. Neither lets p escape
// or keeps a part of it after it returns.
//
//go:linkname read loam/unikernel/rt.read
//go:noescape
func read(fd int, p []byte) (n int, err error)

//go:linkname write loam/unikernel/rt.write
//go:noescape
func write(fd int, p []byte) (n int, err error)

// read and write use these functions for descriptors of the host, and before Loam has started.
//
//go:linkname linuxRead
//go:linkname linuxWrite
