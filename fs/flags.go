package fs

import "syscall"

// Flags are those of open(2), with Linux's numbers.
type Flags int32

// The flags that the tree knows. Others pass through to the Handle.
const (
	ReadOnly  Flags = syscall.O_RDONLY
	WriteOnly Flags = syscall.O_WRONLY
	ReadWrite Flags = syscall.O_RDWR
	Create    Flags = syscall.O_CREAT
	Exclusive Flags = syscall.O_EXCL
	Truncate  Flags = syscall.O_TRUNC
	Append    Flags = syscall.O_APPEND
	MustBeDir Flags = syscall.O_DIRECTORY
	NoFollow  Flags = syscall.O_NOFOLLOW
	PathOnly  Flags = 0o10000000 // O_PATH
	TempFile  Flags = 0o20000000 // __O_TMPFILE, without O_DIRECTORY

	accessMode Flags = syscall.O_ACCMODE
)

// MayRead and MayWrite say what the access mode allows.
func (f Flags) MayRead() bool  { return f&accessMode != WriteOnly && f&PathOnly == 0 }
func (f Flags) MayWrite() bool { return f&accessMode != ReadOnly && f&PathOnly == 0 }
