// Package fs is the virtual file system: one tree of names over any number of
// file systems, with the rules of POSIX and Linux for walking it.
//
// It has two halves. Below, a file system is a set of [Node] values, most of
// them a [Directory] or a [Link]; it knows nothing of paths, mounts, callers or
// permissions. Above, a [Tree] joins file systems by mounts, and a [View] is how
// one process looks at it: its root, its working directory, who it is, its umask.
// Everything that POSIX says about paths is done once, in View, for every file
// system: symbolic links and their limit, "..", trailing slashes, permissions,
// the sticky bit, read-only mounts.
//
//	View.Open("/etc/hosts")
//	   Tree: mounts, ".."            walk.go, mount.go
//	     Directory.Lookup("etc")     a file system: fs/memfs, fs/pseudo, fs/tarfs
//	   permissions                   access.go
//	   Node.Open                     -> Handle
//	File: the open file description  file.go: offset, O_APPEND
//
// Errors are syscall.Errno values, so that errors.Is(err, iofs.ErrNotExist) of
// package io/fs holds as well.
//
// # Who owns what
//
// A file system guards its own state; its methods may be called from any
// goroutine. A Tree guards its table of mounts. A View belongs to its process,
// which must not change it while it is in use. A goroutine that owned each file
// system, as a shard owns its connections, was rejected: a call would cost two
// switches of goroutines where a lock that nobody else wants costs 10 ns, and no
// file here waits for a timer or a peer.
//
// Package fs/fstest judges a file system from above, through a View.
package fs
