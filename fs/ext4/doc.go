// Package ext4 is the file system ext4 on a block device: it reads and writes what
// mke2fs(8) makes, with its journal.
//
//	fs.View                          package fs: paths, permissions
//	  nodes and handles              node.go, directory.go, file.go, attributes.go
//	    names: leaves and indexes    entries.go, index.go
//	    extents: blocks of files     tree.go, read.go
//	    inodes, blocks: allocation   inode.go, allocate.go, orphan.go
//	      op: one change, all of it or nothing         op.go
//	        cache: images of blocks                    cache.go
//	          transactions, commits, checkpoints       commit.go
//	            fs/ext4/journal, a pure machine
//	  fs/ext4/disk: the format
//
// # State is the blocks
//
// Inodes, directories, extent trees and bitmaps are not decoded into structures
// of their own: what is in memory is the blocks, and views of package disk read
// and change them. Three things follow. An [op] that fails puts back the images
// of the blocks that it touched, and nothing of it remains, so ENOSPC never leaves
// half a change. A transaction is the set of blocks that changed. And an image
// that a commit writes is never changed, since every op works on copies.
//
// # Locks
//
// mu guards everything but the cache's table. Reads take it shared, ops
// exclusively. commitMu is taken before mu by a commit, and held while
// it waits for the device; mu is not, so that ops go on in the next transaction.
// The cache's own lock is a leaf. A caller of fsync(2) takes commitMu. The first
// of them commits for all that wait (group commit).
//
// # Order on the device
//
// The mode is ordered: a commit first writes the content of files, then lets the
// journal write its transaction. Blocks that are freed are not used again before
// their transaction is committed, so that a crash never shows new content in an
// old file.
//
// # Damage
//
// Every block is checked when it is read, by its checksum if there is one and by
// its structure always. A wrong structure gives EUCLEAN (as Linux's EFSCORRUPTED), and
// EIO what cannot be read. A commit that fails makes the file system read-only.
//
// Rejected: decoded inodes in memory, as Linux has. They would make stat(2)
// faster, and every failing operation would have to undo what it did to them.
package ext4

import "loam/abi/linux"

// errDamaged is returned for a structure that is not what its place demands.
const errDamaged = linux.EUCLEAN
