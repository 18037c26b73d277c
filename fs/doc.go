// Package fs is the virtual file system: one tree of names over any number of file systems, with the
// rules of POSIX and Linux for path resolution.
//
// It has two halves. The lower half is a file system: a set of [Node] values, most of them a
// [Directory] or a [Link]. A file system knows nothing of paths, mounts, callers or permissions. The
// upper half is a [Tree], which joins file systems by mounts, and a [View], which is how one process
// sees the tree: its root, working directory, credentials and umask. View implements everything that
// POSIX says about paths, once for all file systems: symbolic links and their limit, "..", trailing
// slashes, permissions, the sticky bit, read-only mounts.
//
//	View.Open("/etc/hosts")
//	   Tree: mounts, ".."            walk.go, cross.go, mount.go
//	     Directory.Lookup("etc")     a file system: fs/memfs, fs/pseudo, fs/tarfs, fs/ext4
//	   permissions                   access.go
//	   Node.Open                     -> Handle
//	File: the open file description  file.go: offset, O_APPEND
//
// Errors are linux.Errno values, so that errors.Is(err, iofs.ErrNotExist) of package io/fs holds as
// well.
//
// # Ownership
//
// A file system guards its own state; its methods may be called from any goroutine. A Tree guards its
// table of mounts. A View belongs to its process, which must not change it while it is in use.
//
// Rejected: a goroutine that owns each file system, as a shard owns its connections. Each call would
// cost two goroutine switches, while an uncontended lock costs 10 ns. No file here waits for a timer or
// a peer.
//
// Package fs/fstest tests a file system from above, through a View.
package fs
