// Package ext4 is the file system ext4 on a block device. It reads and writes file systems that
// mke2fs(8) makes, including their journal.
//
//	fs.View                          package fs: paths, permissions
//	  nodes and handles              node.go, directory.go, file.go, attributes.go
//	    names: leaves and indexes    entries.go, index.go
//	    extents: blocks of files     tree.go, read.go
//	    inodes, blocks: allocation   inode.go, allocate.go, orphan.go
//	      op: one atomic change      op.go
//	        content without blocks yet               delay.go
//	        cache: images of blocks                    cache.go
//	          transactions, commits, checkpoints       commit.go
//	            fs/ext4/journal, a pure machine
//	  fs/ext4/disk: the format
//
// # State is the blocks
//
// Inodes, directories, extent trees and bitmaps are not decoded into separate structures: memory
// holds the blocks themselves, and views of package disk read and change them. This has three
// consequences. An [op] that fails restores the parts of blocks that it changed, so ENOSPC
// never leaves a partial change. A transaction is the set of blocks that changed. And an image that
// a commit is writing is never modified: the first op that changes the block afterwards copies it.
//
// Checksums of changed blocks are written when their transaction is committed. In memory they are old until then.
//
// # Locks
//
// mu guards everything except the table of the cache. Reads hold it shared, ops hold it exclusively. Lookups of known names
// take no lock (package fs/ext4/lookup), and neither do open and close of a file whose attributes are known. A commit
// takes commitMu before mu, and holds commitMu while it waits for the device. It does not hold mu meanwhile,
// so ops continue in the next transaction. No other lock is taken while the cache's own lock is held. A
// caller of fsync(2) takes commitMu. The first one commits for all that wait (group commit). Without a change of the
// file's inode in the running transaction, fsync only writes the content of the file and flushes the device.
//
// # Order on the device
//
// The mode is ordered: a commit writes the content of files together with the journal's blocks. A flush makes both durable
// before the commit block is written. Freed blocks are not reused before their transaction is committed, so a crash never
// shows new content in an old file.
//
// # Damage
//
// Every block is checked when it is read: its structure always, and its checksum if it has one. A
// wrong structure is reported as EUCLEAN (as Linux's EFSCORRUPTED), and an unreadable block as EIO.
// A commit that fails makes the file system read-only.
//
// Rejected: decoded inodes in memory, as Linux has. They would make stat(2) faster, but every
// failing operation would have to undo its changes to them.
package ext4

import "loam/abi/linux"

// errDamaged is the error for a block that does not hold a valid structure of the expected kind.
const errDamaged = linux.EUCLEAN
