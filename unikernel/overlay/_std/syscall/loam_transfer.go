package syscall

// Read and write by a way of their own. Programs make no calls more often, and these
// need nothing of the door: their arguments are a number and a slice, which may move
// with the stack. So there is neither a table of calls nor a function of this package
// between a program and its file.

import _ "unsafe" // for go:linkname

// read and write are read(2) and write(2), of Loam's descriptors and of the host's. Both
// keep the slice to themselves, and nothing of it after they have returned.
//
//go:linkname read loam/unikernel/rt.read
//go:noescape
func read(fd int, p []byte) (n int, err error)

//go:linkname write loam/unikernel/rt.write
//go:noescape
func write(fd int, p []byte) (n int, err error)

// They go to these for descriptors of the host, and before Loam has started.
//
//go:linkname linuxRead
//go:linkname linuxWrite
