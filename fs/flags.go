package fs

import "loam/abi/linux"

// Flags are the flags of open(2), with Linux's values.
type Flags int32

// Flags that the tree interprets. Other flags are passed to Node.Open.
const (
	ReadOnly  Flags = linux.O_RDONLY
	WriteOnly Flags = linux.O_WRONLY
	ReadWrite Flags = linux.O_RDWR
	Create    Flags = linux.O_CREAT
	Exclusive Flags = linux.O_EXCL
	Truncate  Flags = linux.O_TRUNC
	Append    Flags = linux.O_APPEND
	MustBeDir Flags = linux.O_DIRECTORY
	Direct    Flags = linux.O_DIRECT // see Bypass
	NoFollow  Flags = linux.O_NOFOLLOW
	PathOnly  Flags = linux.O_PATH                         // the file is opened as a path, without I/O
	TempFile  Flags = linux.O_TMPFILE &^ linux.O_DIRECTORY // bit __O_TMPFILE: O_TMPFILE without O_DIRECTORY

	accessMode Flags = linux.O_ACCMODE
)

// MayRead and MayWrite report whether the access mode allows reading and writing.
func (f Flags) MayRead() bool  { return f&accessMode != WriteOnly && f&PathOnly == 0 }
func (f Flags) MayWrite() bool { return f&accessMode != ReadOnly && f&PathOnly == 0 }
