package fs

import "loam/fs/acl"

// The interfaces that a file system implements. The capabilities of a file beyond Node are given by the
// interfaces that its node implements: Directory, Link, and others.

// MaxName is the maximum length of a directory entry's name in bytes (NAME_MAX).
const MaxName = 255

// FileSystem is a set of nodes with one root.
type FileSystem interface {
	// Root returns the root directory, the same value each time. It is not called before the first
	// lookup, so a file system may be opened lazily.
	Root() Directory
	// Usage returns the information for statfs(2).
	Usage() Usage
	// Sync returns when all written data is on stable storage, if there is any.
	Sync() error
}

// Node is a file of any type. Two Node values are the same file if and only if they are equal, so a
// file system represents each file by one comparable value.
type Node interface {
	Attr() Attr
	// Change changes attributes. The caller has checked permissions. Errors: EROFS, EPERM, EINVAL (a
	// negative size, or a size for a file without one), EFBIG, ENOSPC.
	Change(Change) error
	// Open returns a handle. The caller has checked permissions. A device file returns ENXIO: the Tree
	// opens devices by their number.
	Open(Flags) (Handle, error)
}

// Owner is the owner of a new file, with its access control lists. Only a directory that is Controlled gives files lists.
type Owner struct {
	UID, GID uint32
	ACL      acl.Set
}

// RenameFlags are the flags of renameat2(2).
type RenameFlags uint32

// Flags of Rename.
const (
	RenameNoReplace RenameFlags = 1 << iota // fail with EEXIST if the new name exists
	RenameExchange                          // exchange the two files atomically
	RenameWhiteout                          // leave a whiteout at the old name; Directory.Rename is not called with it: see Whiteouter
)

// Directory is a node that contains names. A name has 1 to MaxName bytes, contains no slash or NUL, and
// is neither "." nor ".."; the caller has checked this. In a removed directory, methods that would add
// a name return ENOENT.
type Directory interface {
	Node
	// Lookup returns the node with a name. Errors: ENOENT.
	Lookup(name string) (Node, error)
	// Parent returns the parent directory; for the root, the root itself.
	Parent() Directory
	// NameOf returns the name of the subdirectory child; false if child is not in this directory.
	NameOf(child Directory) (string, bool)
	// Make creates an empty file of the type in mode, except symbolic links: see Symlink. Errors:
	// EEXIST, ENOSPC, EROFS, EPERM (an unsupported type).
	Make(name string, mode Mode, owner Owner, device Device) (Node, error)
	// Symlink creates a symbolic link.
	Symlink(name, target string, owner Owner) (Node, error)
	// Link adds a name for a file of the same file system that is not a directory. Errors: EEXIST,
	// EMLINK; ENOENT if the file has no name left, or must not get one.
	Link(name string, to Node) error
	// Unlink removes the name of a file that is not a directory. Errors: ENOENT, EISDIR.
	Unlink(name string) error
	// Rmdir removes an empty directory. Errors: ENOENT, ENOTDIR, ENOTEMPTY.
	Rmdir(name string) error
	// Rename atomically moves name to newName in the directory to of the same file system. Errors as
	// for rename(2): EINVAL (a directory into itself), EISDIR, ENOTDIR, ENOTEMPTY, EEXIST.
	Rename(name string, to Directory, newName string, flags RenameFlags) error
	// Read yields the entries after cursor, or all entries for 0, until yield returns false. An entry
	// that exists during the whole listing is yielded exactly once, even if other entries are added or
	// removed. "." and ".." are not included.
	Read(cursor uint64, yield func(Entry) bool) error
}

// Entry is an entry of a directory.
type Entry struct {
	Name   string
	Inode  uint64
	Type   Mode
	Cursor uint64 // position after this entry; at least 1, ascending
}

// Link is a symbolic link.
type Link interface {
	Node
	Target() (string, error)
}

// Handle is an open file without an offset. Several goroutines may use it at once.
type Handle interface {
	// ReadAt reads at most len(p) bytes. It returns 0 and no error at the end of the file. Unlike
	// io.ReaderAt, it may return fewer bytes than are available.
	ReadAt(p []byte, offset int64) (int, error)
	// WriteAt writes and extends the file if necessary. n bytes have been written even if err is not
	// nil. Errors: ENOSPC, EFBIG.
	WriteAt(p []byte, offset int64) (int, error)
	// Append atomically finds the end of the file and writes there. It returns the new end.
	Append(p []byte) (n int, end int64, err error)
	// Sync implements fsync(2).
	Sync() error
	// Close is called once. Calls that are in progress at that time either complete or return EBADF.
	Close() error
}

// Stream is a Handle without offsets, such as a terminal or a pipe. Reads and writes receive offset 0,
// and seeking returns ESPIPE.
type Stream interface {
	Handle
	Stream()
}

// Immediate is a Handle whose reads and writes never wait, except for other calls on the same file.
// They never make p, or a part of it, accessible to another goroutine, not even during the call, so p
// may lie on a stack. A call that returns an error has had no effect.
type Immediate interface {
	Handle
	Immediate()
}

// DataSyncer is a Handle with an implementation of fdatasync(2) that is faster than Sync.
type DataSyncer interface {
	Handle
	// SyncData makes durable the content, and the attributes that are needed to read it. Others, such as times, may be lost.
	SyncData() error
}

// Sparse is a Handle that knows the holes of a file, which read as zeros. Its methods do not consider
// offsets beyond the end of the file.
type Sparse interface {
	Handle
	// NextData returns the offset of the first byte at or after offset that is not in a hole. It
	// returns false if only a hole remains.
	NextData(offset int64) (int64, bool)
	// NextHole returns the start of the first hole at or after offset, or the end of the file if there
	// is none.
	NextHole(offset int64) int64
}

// Sized is a Handle that knows its size better than the node does, such as a disk.
type Sized interface {
	Handle
	Size() int64
}

// Endless is a Handle that is the same at every offset, such as the null device or a generator. Reads
// and writes receive offset 0, and seeking returns 0. It reads no clock, so it may be called from a
// bubble of testing/synctest.
type Endless interface {
	Immediate
	Endless()
	// Discards reports whether writes have no effect and never fail. Their bytes need not be read from the memory of a process.
	Discards() bool
}
