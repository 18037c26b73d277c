// Package journal is the journal of ext4 (jbd2), as a pure machine: its input is transactions, its
// output is writes and barriers.
//
// A [Log] receives the new contents of the blocks of a transaction, and returns the [Step] values
// that write them. It accesses neither a device nor a clock. The caller has both, and executes the
// steps in order. Everything before a Flush must be durable before anything after it begins. Tests
// replay the same steps in every order that a disk may choose. [Recover] reads a log after a crash
// and returns the blocks to write.
//
// # States
//
// The log is a ring of blocks. Between tail and head are the committed transactions whose blocks
// may not yet be written home, to their own place on the device. Commit appends a transaction: a
// descriptor that names the blocks, their images, revocations, a barrier, the commit block, a
// barrier. Checkpoint writes the newest image of each block home and empties the log.
//
// # Invariants
//
//   - A transaction takes effect as a whole, as soon as its commit block is durable.
//   - A block is written home only after a transaction with its image is committed.
//   - The tail moves past a transaction only after its blocks are durable at home.
//   - A block that is freed is revoked in the same transaction: recovery does not
//     write older images over a later use of the block.
//
// Source: "Journal (jbd2)" of Documentation/filesystems/ext4 of the Linux kernel.
//
// Rejected: a checkpoint of only the oldest transactions, as in Linux. It keeps the log fuller and
// needs a list of transactions for each block. Here the log is emptied in one pass, and commits
// wait meanwhile.
package journal

import (
	"encoding/binary"
	"errors"

	"loam/fs/ext4/disk"
)

// Errors of this package.
var (
	// ErrDamaged is the error for an unreadable log.
	ErrDamaged = errors.New("the journal is damaged: run e2fsck")
	// ErrUnsupported is the error for a log with unknown features.
	ErrUnsupported = errors.New("the journal has features that are not supported: run e2fsck")
	// ErrFull is the error for a transaction that is larger than the log.
	ErrFull = errors.New("a transaction is larger than the journal")
)

var be = binary.BigEndian

func crc(seed uint32, p []byte) uint32 { return disk.CRC(seed, p) }

func crcNumber(seed, n uint32) uint32 {
	var b [4]byte
	be.PutUint32(b[:], n)
	return disk.CRC(seed, b[:])
}
