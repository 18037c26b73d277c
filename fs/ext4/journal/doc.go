// Package journal is the journal of ext4 (jbd2), as a pure machine: transactions
// go in, writes and barriers come out.
//
// A [Log] receives the new contents of the blocks of a transaction, and returns the
// [Step] values that write them. It knows neither a device nor a clock. The caller has
// both and executes the steps in order; everything before a Flush is
// durable before anything after it begins. Tests replay the same steps in every
// order that a disk may choose. [Recover] reads a log after a crash and yields the
// blocks to write.
//
// # States
//
// The log is a ring of blocks. From tail to head lie committed transactions whose
// blocks may not be at home yet. Commit appends one: a descriptor that names the
// blocks, their images, revocations, a barrier, the commit block, a barrier.
// Checkpoint writes home the newest image of each block and empties the log.
//
// # Invariants
//
//   - A transaction counts after its commit block is durable, and wholly.
//   - A block goes home only after a transaction with its image is committed.
//   - The tail moves only after what lies behind it is durable at home.
//   - A block that is freed is revoked in the same transaction: recovery does not
//     write older images over whatever the block is used for later.
//
// Source: "Journal (jbd2)" of Documentation/filesystems/ext4 of the Linux kernel.
//
// Rejected: a checkpoint of the oldest transactions alone, which Linux has. It
// keeps the log fuller and needs a list of transactions for each block; here the
// log is emptied in one pass, and commits wait meanwhile.
package journal

import (
	"encoding/binary"
	"errors"

	"loam/fs/ext4/disk"
)

// Errors of this package.
var (
	// ErrDamaged is returned for a log that cannot be read.
	ErrDamaged = errors.New("the journal is damaged: run e2fsck")
	// ErrUnsupported is returned for a log with features that are not known here.
	ErrUnsupported = errors.New("the journal has features that are not supported: run e2fsck")
	// ErrFull is returned for a transaction that is larger than the log.
	ErrFull = errors.New("a transaction is larger than the journal")
)

var be = binary.BigEndian

func crc(seed uint32, p []byte) uint32 { return disk.CRC(seed, p) }

func crcNumber(seed, n uint32) uint32 {
	var b [4]byte
	be.PutUint32(b[:], n)
	return disk.CRC(seed, b[:])
}
