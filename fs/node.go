package fs

// The half that a file system implements. Beyond Node, what a file can do is
// what interfaces it implements: Directory, Link, or only Open.

// MaxName is the longest name of a directory entry in bytes (NAME_MAX).
const MaxName = 255

// FileSystem is a set of nodes with one root.
type FileSystem interface {
	// Root is the directory at which it is mounted; the same value each time. Nobody asks
	// before the directory is looked at.
	Root() Directory
	// Usage is for statfs(2).
	Usage() Usage
	// Sync returns when everything written is on stable storage, if there is any.
	Sync() error
}

// Node is a file of any type. Two Node values are the same file when they are
// equal; a file system therefore gives each file one comparable value.
type Node interface {
	Attr() Attr
	// Change changes attributes. The caller has checked that it may.
	// Errors: EROFS, EPERM, EINVAL (a size that is negative, or of a file that
	// has none), EFBIG, ENOSPC.
	Change(Change) error
	// Open makes a handle. The caller has checked that it may. A device that is
	// only a number (mknod) gives ENXIO: the Tree knows the devices.
	Open(Flags) (Handle, error)
}

// Owner is to whom a new file belongs.
type Owner struct{ UID, GID uint32 }

// RenameFlags are those of renameat2(2).
type RenameFlags uint32

// Ways to rename.
const (
	RenameNoReplace RenameFlags = 1 << iota
	RenameExchange
)

// Directory is a node that holds names. A name is 1 to MaxName bytes without a
// slash or NUL and neither "." nor ".."; the caller has checked. A directory
// that has been removed gives ENOENT for everything that would add to it.
type Directory interface {
	Node
	// Lookup finds a name. Errors: ENOENT.
	Lookup(name string) (Node, error)
	// Parent is the directory above; of the root, the root.
	Parent() Directory
	// NameOf is the name of the directory child here; false if it is not here.
	NameOf(child Directory) (string, bool)
	// Make makes a file of the type that mode says, empty; a symbolic link is made
	// by Symlink. Errors: EEXIST, ENOSPC, EROFS, EPERM (a type that cannot be here).
	Make(name string, mode Mode, owner Owner, device Device) (Node, error)
	// Symlink makes a symbolic link.
	Symlink(name, target string, owner Owner) (Node, error)
	// Link gives a file of this file system, no directory, one more name.
	// Errors: EEXIST, EMLINK, ENOENT when it has no name any more, or was made to have none.
	Link(name string, to Node) error
	// Unlink removes a name of what is no directory. Errors: ENOENT, EISDIR.
	Unlink(name string) error
	// Rmdir removes an empty directory. Errors: ENOENT, ENOTDIR, ENOTEMPTY.
	Rmdir(name string) error
	// Rename moves name to newName in the directory to of the same file system,
	// in one step. Errors as rename(2): EINVAL into itself, EISDIR, ENOTDIR,
	// ENOTEMPTY, EEXIST.
	Rename(name string, to Directory, newName string, flags RenameFlags) error
	// Read yields the entries after cursor, 0 for all, until yield says false.
	// Entries that exist all the while come exactly once, whatever is added or
	// removed meanwhile. "." and ".." are not among them.
	Read(cursor uint64, yield func(Entry) bool) error
}

// Entry is one name of a directory.
type Entry struct {
	Name   string
	Inode  uint64
	Type   Mode
	Cursor uint64 // continues after this entry; at least 1, rising
}

// Link is a symbolic link.
type Link interface {
	Node
	Target() (string, error)
}

// Handle is an open file without an offset. It may be used by several goroutines
// at once.
type Handle interface {
	// ReadAt reads at most len(p) bytes; 0 and no error is the end of the file.
	// Unlike io.ReaderAt it may read fewer bytes than there are.
	ReadAt(p []byte, offset int64) (int, error)
	// WriteAt writes, and lengthens the file where needed.
	// Errors: ENOSPC, EFBIG; n bytes have been written in any case.
	WriteAt(p []byte, offset int64) (int, error)
	// Append writes at the end, in one step with finding it, and returns the end
	// after it.
	Append(p []byte) (n int, end int64, err error)
	// Sync is fsync(2).
	Sync() error
	// Close is called once. What else is under way then ends as if it had come before,
	// or with EBADF.
	Close() error
}

// Stream is a Handle without offsets: a terminal, a pipe. Reads and writes get
// offset 0, and seeking gives ESPIPE.
type Stream interface {
	Handle
	Stream()
}

// Immediate is a Handle whose reads and writes wait for nobody but for others that use
// the same file, and that never leave p, or a part of it, where another goroutine could
// come by it, not even until they return: p may lie on a stack. One that fails has done
// nothing.
type Immediate interface {
	Handle
	Immediate()
}

// Sparse is a Handle that knows where a file has holes, which read as zeroes. Both say nothing
// of what lies beyond the end.
type Sparse interface {
	Handle
	// NextData is where the first byte at or behind offset is that is in no hole; false if all
	// that is left is a hole.
	NextData(offset int64) (int64, bool)
	// NextHole is where the first hole at or behind offset begins; where there is none, at the
	// end of the file.
	NextHole(offset int64) int64
}

// Sized is a Handle that knows its size better than the node does: a disk.
type Sized interface {
	Handle
	Size() int64
}

// Endless is a Handle that is the same at every offset: the null device, a
// generator. Nobody counts: reads and writes get offset 0, and seeking leads
// there. Nor does it look at a clock, so that it may be called from a bubble of
// testing/synctest.
type Endless interface {
	Immediate
	Endless()
}
